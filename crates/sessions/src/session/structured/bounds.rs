//! How much work a schema may make. A short one can describe more than any program checks: references
//! that fan out double the work with each step, and a long chain of them overflows the stack of who reads
//! it. So a schema is walked once, with its references followed, before anything else reads it.

use serde_json::{Map, Value};

/// The longest schema.
const BYTES: usize = 64 * 1024;

/// How many schemas it may be made of, each reference counted as all that it leads to.
const SCHEMAS: usize = 2000;

/// How deep they may lie in each other.
const DEPTH: usize = 100;

/// Keywords by which a reference is more than the place of another schema in the same document.
const UNKNOWN_PLACE: [&str; 5] =
    ["$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];

/// Keywords whose value is a schema that is applied to the same value, or to parts of it.
const ONE: [&str; 13] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "extends",
];

/// Refuses a schema that would take too much work, in words that follow "schema".
pub(super) fn check(text: &str, schema: &Value) -> Result<(), String> {
    if text.len() > BYTES {
        return Err(format!("is longer than {BYTES} bytes"));
    }
    let mut walk = Walk { root: schema, seen: 0, path: vec!["#".to_owned()] };
    walk.schema(schema, 0).map(drop)
}

struct Walk<'s> {
    root: &'s Value,
    seen: usize,
    /// The references that lead here.
    path: Vec<String>,
}

impl<'s> Walk<'s> {
    /// How often the schema applies one that it lies in to the same value. More than once would double the
    /// work with each level of the value.
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<usize, String> {
        self.seen += 1;
        if self.seen > SCHEMAS {
            return Err(format!("is made of more than {SCHEMAS} schemas, references followed"));
        }
        if depth > DEPTH {
            return Err(format!("nests more than {DEPTH} schemas"));
        }
        let Value::Object(fields) = schema else { return Ok(0) };
        let again = self.fields(fields, depth)?;
        match again {
            0 | 1 => Ok(again),
            _ => Err("refers to itself more than once for the same value".to_owned()),
        }
    }

    fn fields(&mut self, fields: &'s Map<String, Value>, depth: usize) -> Result<usize, String> {
        let mut again = 0;
        for (name, value) in fields {
            let is_inner_id = name == "$id" && depth > 0;
            if UNKNOWN_PLACE.contains(&name.as_str()) || is_inner_id {
                return Err(format!("has {name}, which is not supported here"));
            }
            again += match (name.as_str(), value) {
                ("$ref", Value::String(place)) => self.reference(place, depth)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => self.sum(all, depth)?,
                ("prefixItems" | "items", Value::Array(all)) => self.most(all, depth)?,
                ("properties", Value::Object(all)) => self.most(all.values(), depth)?,
                ("patternProperties" | "dependentSchemas" | "dependencies", Value::Object(all)) => {
                    self.sum(all.values(), depth)?
                }
                (name, value) if ONE.contains(&name) => self.schema(value, depth + 1)?,
                _ => 0,
            };
        }
        Ok(again)
    }

    /// Of schemas that are all applied to the same value.
    fn sum(
        &mut self,
        all: impl IntoIterator<Item = &'s Value>,
        depth: usize,
    ) -> Result<usize, String> {
        all.into_iter().try_fold(0, |sum, schema| Ok(sum + self.schema(schema, depth + 1)?))
    }

    /// Of schemas that are each applied to another part of the value.
    fn most(
        &mut self,
        all: impl IntoIterator<Item = &'s Value>,
        depth: usize,
    ) -> Result<usize, String> {
        all.into_iter().try_fold(0, |most, schema| Ok(self.schema(schema, depth + 1)?.max(most)))
    }

    fn reference(&mut self, place: &str, depth: usize) -> Result<usize, String> {
        if self.path.iter().any(|before| before == place) {
            return Ok(1);
        }
        let pointer = place.strip_prefix('#').filter(|it| it.is_empty() || it.starts_with('/'));
        let pointer = pointer.filter(|pointer| !pointer.contains('%'));
        let Some(pointer) = pointer else {
            return Err(format!("has the reference {place:?}; only #/… is supported"));
        };
        // One that leads nowhere is refused by who builds the validator.
        let Some(schema) = self.root.pointer(pointer) else { return Ok(0) };
        self.path.push(place.to_owned());
        let again = self.schema(schema, depth + 1)?;
        self.path.pop();
        Ok(again)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check;

    fn checked(schema: &Value) -> Result<(), String> {
        check(&schema.to_string(), schema)
    }

    /// A chain of definitions, each made of the next one.
    fn chain(links: usize, link: impl Fn(&Value) -> Value) -> Value {
        let mut definitions = serde_json::Map::new();
        for at in 0..links {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            definitions.insert(format!("d{at}"), link(&next));
        }
        definitions.insert(format!("d{links}"), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    }

    #[test]
    fn what_would_take_too_much_work_is_refused() {
        let both = |next: &Value| json!({ "anyOf": [next, next] });
        for (schema, why) in [
            (chain(40, both), "more than 2000 schemas"),
            (chain(900, Value::clone), "nests more than"),
            (json!({ "description": "x".repeat(70_000) }), "longer than"),
            (
                json!({ "anyOf": [
                    { "properties": { "a": { "$ref": "#" } } },
                    { "properties": { "a": { "$ref": "#" } } },
                ] }),
                "refers to itself more than once",
            ),
            (
                json!({ "properties": { "a": { "$ref": "#" } }, "patternProperties": { "a": { "$ref": "#" } } }),
                "refers to itself more than once",
            ),
            (json!({ "$ref": "other.json" }), "only #/"),
            (json!({ "$dynamicRef": "#a" }), "$dynamicRef"),
        ] {
            let refused = checked(&schema).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn ordinary_schemas_are_taken() {
        let node = json!({ "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] });
        for schema in [
            json!(true),
            json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
            // A tree, as a generator writes it.
            json!({
                "$ref": "#/$defs/node",
                "$defs": { "node": {
                    "type": "object",
                    "properties": { "left": node, "right": node, "value": { "type": "number" } },
                } },
            }),
            json!({ "type": "array", "items": { "$ref": "#" } }),
            chain(20, |next| json!({ "type": "object", "properties": { "a": next } })),
            json!({ "properties": { "$ref": { "type": "string" }, "enum": { "enum": ["$ref"] } } }),
        ] {
            assert_eq!(checked(&schema), Ok(()), "{schema}");
        }
    }
}
