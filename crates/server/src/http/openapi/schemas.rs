//! The schemas of the server's input and output. A type that is used for both may accept more than it
//! writes (fields that may be omitted or `null`). Such a type is described twice; the input has a name that
//! ends in `Input`.

use std::collections::BTreeSet;

use agentwire_protocol::schema::{forget, spread_command, spread_event, without_null};
use schemars::generate::SchemaSettings;
use schemars::transform::Transform as _;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::SchemaFn;

const SCHEMAS_PATH: &str = "/components/schemas";

/// Collects schemas of types as they are used.
pub(super) struct Schemas {
    input_types: SchemaGenerator,
    output_types: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = |settings: SchemaSettings| {
            settings
                .with(|settings| settings.definitions_path = SCHEMAS_PATH.into())
                .into_generator()
        };
        Self {
            input_types: settings(SchemaSettings::draft2020_12()),
            output_types: settings(SchemaSettings::draft2020_12().for_serialize()),
        }
    }

    /// The schema of a type that clients send.
    pub(super) fn input_schema(&mut self, schema_fn: SchemaFn) -> Value {
        // Marked, to tell it from output types until all types are known.
        let mut schema = schema_fn(&mut self.input_types).to_value();
        rename(&mut schema, &|name| Some(format!("<{name}")));
        schema
    }

    /// The schema of a type that clients receive.
    pub(super) fn output_schema(&mut self, schema_fn: SchemaFn) -> Value {
        without_nulls(schema_fn(&mut self.output_types)).to_value()
    }

    /// Adds the definitions to the document and fixes the references.
    pub(super) fn put_into(mut self, document: &mut Value) {
        let mut inputs = self.input_types.take_definitions(true);
        let mut outputs = self.output_types.take_definitions(true);
        for schema in outputs.values_mut() {
            if let Ok(described) = Schema::try_from(schema.clone()) {
                *schema = without_nulls(described).to_value();
            }
        }
        let prefix = format!("#{SCHEMAS_PATH}/");
        let mut parts = Vec::new();
        if let Some(Value::Object(mut event)) = outputs.remove("Event") {
            parts.extend(spread_event(&mut event, &mut outputs, &prefix));
            outputs.insert("Event".to_owned(), event.into());
        }
        if let Some(Value::Object(mut frame)) = inputs.remove("CommandFrame") {
            parts.extend(spread_command(&mut frame, &mut inputs, &prefix));
            inputs.insert("CommandFrame".to_owned(), frame.into());
        }
        let twice = different(&inputs, &outputs);
        let name = |name: &str| match twice.contains(name) {
            true => format!("{name}Input"),
            false => name.to_owned(),
        };
        rename(document, &|marked| marked.strip_prefix('<').map(&name));
        let mut all = outputs;
        for (own, mut schema) in inputs {
            rename(&mut schema, &|other| Some(name(other)));
            all.insert(name(&own), schema);
        }
        forget(&parts, &mut all, &prefix, document);
        if let Some(Value::Object(known)) = document.pointer_mut(SCHEMAS_PATH) {
            known.extend(all);
        }
    }
}

fn without_nulls(mut schema: Schema) -> Schema {
    (without_null as fn(&mut Schema)).transform(&mut schema);
    schema
}

/// The types whose descriptions differ, or that contain such types.
fn different(inputs: &Map<String, Value>, outputs: &Map<String, Value>) -> BTreeSet<String> {
    let is_both = |name: &&String| outputs.contains_key(*name);
    let mut found: BTreeSet<String> = inputs
        .keys()
        .filter(is_both)
        .filter(|name| inputs[*name] != outputs[*name])
        .cloned()
        .collect();
    loop {
        let has_found = |schema: &Value| {
            let mut schema = schema.clone();
            let mut has = false;
            visit(&mut schema, &mut |name| has |= found.contains(name.as_str()));
            has
        };
        let more: Vec<String> = inputs
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

/// Calls `visit_name` for every type that is referred to.
fn visit(schema: &mut Value, visit_name: &mut dyn FnMut(&mut String)) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(prefix) if key == "$ref" => {
                        let head = format!("#{SCHEMAS_PATH}/");
                        if let Some(name) = prefix.strip_prefix(&head) {
                            let mut name = name.to_owned();
                            visit_name(&mut name);
                            *prefix = format!("{head}{name}");
                        }
                    }
                    other => visit(other, visit_name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, visit_name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
