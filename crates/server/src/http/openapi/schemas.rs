//! The schemas of the server's input and output. A type that is used for both may accept more than it
//! writes (fields that may be omitted or `null`). Such a type is described twice; the input has a name that
//! ends in `Input`.

use std::collections::BTreeSet;

use agentwire_protocol::schema::{forget, spread_command, spread_event, without_null};
use schemars::generate::SchemaSettings;
use schemars::transform::Transform as _;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::Shape;

const PLACE: &str = "/components/schemas";

/// Collects schemas of types as they are used.
pub(super) struct Schemas {
    takes: SchemaGenerator,
    gives: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = |settings: SchemaSettings| {
            settings.with(|settings| settings.definitions_path = PLACE.into()).into_generator()
        };
        Self {
            takes: settings(SchemaSettings::draft2020_12()),
            gives: settings(SchemaSettings::draft2020_12().for_serialize()),
        }
    }

    /// The schema of a type that clients send.
    pub(super) fn taken(&mut self, shape: Shape) -> Value {
        // Marked, to tell it from output types until all types are known.
        let mut schema = shape(&mut self.takes).to_value();
        rename(&mut schema, &|name| Some(format!("<{name}")));
        schema
    }

    /// The schema of a type that clients receive.
    pub(super) fn given(&mut self, shape: Shape) -> Value {
        without_nulls(shape(&mut self.gives)).to_value()
    }

    /// Adds the definitions to the document and fixes the references.
    pub(super) fn put_into(mut self, document: &mut Value) {
        let mut taken = self.takes.take_definitions(true);
        let mut given = self.gives.take_definitions(true);
        for schema in given.values_mut() {
            if let Ok(described) = Schema::try_from(schema.clone()) {
                *schema = without_nulls(described).to_value();
            }
        }
        let place = format!("#{PLACE}/");
        let mut parts = Vec::new();
        if let Some(Value::Object(mut event)) = given.remove("Event") {
            parts.extend(spread_event(&mut event, &mut given, &place));
            given.insert("Event".to_owned(), event.into());
        }
        if let Some(Value::Object(mut frame)) = taken.remove("CommandFrame") {
            parts.extend(spread_command(&mut frame, &mut taken, &place));
            taken.insert("CommandFrame".to_owned(), frame.into());
        }
        let twice = different(&taken, &given);
        let name = |name: &str| match twice.contains(name) {
            true => format!("{name}Input"),
            false => name.to_owned(),
        };
        rename(document, &|marked| marked.strip_prefix('<').map(&name));
        let mut all = given;
        for (own, mut schema) in taken {
            rename(&mut schema, &|other| Some(name(other)));
            all.insert(name(&own), schema);
        }
        forget(&parts, &mut all, &place, document);
        if let Some(Value::Object(known)) = document.pointer_mut(PLACE) {
            known.extend(all);
        }
    }
}

fn without_nulls(mut schema: Schema) -> Schema {
    (without_null as fn(&mut Schema)).transform(&mut schema);
    schema
}

/// The types whose descriptions differ, or that contain such types.
fn different(taken: &Map<String, Value>, given: &Map<String, Value>) -> BTreeSet<String> {
    let is_both = |name: &&String| given.contains_key(*name);
    let mut found: BTreeSet<String> =
        taken.keys().filter(is_both).filter(|name| taken[*name] != given[*name]).cloned().collect();
    loop {
        let has_found = |schema: &Value| {
            let mut schema = schema.clone();
            let mut has = false;
            visit(&mut schema, &mut |name| has |= found.contains(name.as_str()));
            has
        };
        let more: Vec<String> = taken
            .iter()
            .filter(|(name, schema)| !found.contains(*name) && is_both(name) && has_found(schema))
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

fn rename(schema: &mut Value, new: &dyn Fn(&str) -> Option<String>) {
    visit(schema, &mut |name| {
        if let Some(new) = new(name) {
            *name = new;
        }
    });
}

/// Calls `see` for every type that is referred to.
fn visit(schema: &mut Value, see: &mut dyn FnMut(&mut String)) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(place) if key == "$ref" => {
                        let head = format!("#{PLACE}/");
                        if let Some(name) = place.strip_prefix(&head) {
                            let mut name = name.to_owned();
                            see(&mut name);
                            *place = format!("{head}{name}");
                        }
                    }
                    other => visit(other, see),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
