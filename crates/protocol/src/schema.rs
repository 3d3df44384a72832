//! JSON Schema of what goes over the wire, generated from the types.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};

use crate::event::Event;
use crate::session::SessionRequest;

/// The schema of an event, as `agentwire schema event` prints it.
pub fn event() -> Schema {
    generate::<Event<'static>>("agentwire event")
}

/// The schema of a session request, as `agentwire schema request` prints it.
pub fn request() -> Schema {
    generate::<SessionRequest>("agentwire session request")
}

fn generate<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}
