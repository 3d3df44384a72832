//! `agentwire schema`: the JSON Schema of what we say and take.

use std::io::{self, Write as _};

use agentwire_protocol::schema;

use crate::args::{Schema, SchemaOf};
use crate::print;
use crate::settings::file;

pub(crate) fn run(args: &Schema) -> io::Result<()> {
    let schema = match args.of {
        SchemaOf::Event => schema::event(),
        SchemaOf::Request => schema::request(),
        SchemaOf::Config => file::schema(),
    };
    writeln!(print::stdout(), "{:#}", schema.as_value())
}
