//! `agentwire schema`: prints JSON Schemas and the OpenAPI document.

use std::io::{self, Write as _};

use agentwire_protocol::schema;

use crate::args::{Schema, SchemaOf};
use crate::print;
use crate::settings::file;

pub(crate) fn run(args: &Schema) -> io::Result<()> {
    let schema = match args.of {
        SchemaOf::Event => schema::event().to_value(),
        SchemaOf::Request => schema::request().to_value(),
        SchemaOf::Command => schema::command().to_value(),
        SchemaOf::Reply => schema::reply().to_value(),
        SchemaOf::Openapi => agentwire_server::http::openapi(),
        SchemaOf::Config => file::schema().to_value(),
    };
    writeln!(print::stdout(), "{schema:#}")
}
