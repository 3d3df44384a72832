//! Limits how much work a schema may cause. A short schema can describe more than any program can check:
//! references that fan out double the work with each step, and a long chain of them overflows the reader's
//! stack. So a schema is walked once, with its references followed, before anything else reads it. Its
//! weight then determines how large an answer may be checked with it.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::{Map, Value, json};

/// The longest schema.
const BYTES: usize = 64 * 1024;

/// How many schemas it may consist of, counting each reference as everything that it leads to.
const SCHEMAS: usize = 2000;

/// How deeply they may be nested.
const DEPTH: usize = 100;

/// How many values it may consist of, counted in the same way: keywords, and values that an answer is
/// compared with.
const VALUES: usize = 50_000;

/// The total size of its compiled patterns, in KiB.
const PATTERNS: usize = 4096;

/// The size of one compiled pattern, in KiB.
pub(super) const LARGEST_PATTERN: usize = 1024;

/// The pattern sizes that are distinguished, in KiB.
const PATTERN_SIZES: [usize; 5] = [4, 16, 64, 256, LARGEST_PATTERN];

/// How much checking a schema may cause for an answer: its values times those of the answer.
const WORK: usize = 20_000_000;

/// How much pattern matching an answer may cause: the patterns' KiB times the bytes of the answer.
const PATTERN_WORK: usize = 16 << 20;

/// How many mistakes may be collected at most in order to report some of them: the library collects all.
const TOLD_WORK: usize = 50_000;

/// The most values in an answer.
const ANSWER_VALUES: usize = 100_000;

/// This many bytes of an answer cost as much work as one more value.
const BYTES_PER_VALUE: usize = 32;

/// Keywords that make a reference more than the location of another schema in the same document, and
/// keywords that check the same schemas again for each enclosing schema.
const NOT_SUPPORTED: [&str; 7] = [
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a schema that applies to the same value, or to parts of it.
const ONE: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
    "extends",
];

/// Refuses a schema that would cause too much work. The error text continues a sentence that starts with
/// "schema".
pub(super) fn check(text: &str, schema: &Value) -> Result<Weight, String> {
    if text.len() > BYTES {
        return Err(format!("is longer than {BYTES} bytes"));
    }
    let weight = Weight::default();
    let mut walk =
        Walk { root: schema, seen: 0, weight, sizes: HashMap::new(), path: vec!["#".to_owned()] };
    walk.schema(schema, 0)?;
    Ok(walk.weight)
}

/// How patterns are matched: in a time that depends only on the length of the text.
pub(super) fn patterns(kib: usize) -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(kib << 10).dfa_size_limit(LARGEST_PATTERN << 10)
}

/// How much work a schema causes for each part of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// The values that it consists of, with references followed.
    values: usize,
    /// The size of its patterns, in KiB.
    patterns: usize,
    /// One mistake contains the mistakes of each alternative.
    has_alternatives: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// The check is so cheap that it runs immediately.
    pub(super) is_small: bool,
    /// All mistakes can be collected.
    pub(super) can_tell_all: bool,
    /// The first mistake can be found without the others.
    pub(super) can_tell_first: bool,
}

impl Weight {
    /// The cost of checking that answer; an error if it is too high.
    pub(super) fn cost(self, answer: &str) -> Result<Cost, String> {
        let values = values_of(answer);
        if values > ANSWER_VALUES {
            return Err(format!("it has more than {ANSWER_VALUES} values"));
        }
        let work = self.values.saturating_mul(values + answer.len() / BYTES_PER_VALUE);
        let patterns = self.patterns.saturating_mul(answer.len());
        if work > WORK || patterns > PATTERN_WORK {
            let length = answer.len();
            return Err(format!(
                "it is too large to be checked with this schema ({length} bytes, {values} values)"
            ));
        }
        let can_tell_all = work <= TOLD_WORK;
        Ok(Cost {
            is_small: can_tell_all && patterns <= TOLD_WORK,
            can_tell_all,
            can_tell_first: !self.has_alternatives,
        })
    }
}

/// How many values and names that JSON has, or slightly more.
fn values_of(json: &str) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

struct Walk<'s> {
    root: &'s Value,
    seen: usize,
    weight: Weight,
    /// The sizes of the patterns seen so far.
    sizes: HashMap<&'s str, usize>,
    /// The references that lead here.
    path: Vec<String>,
}

impl<'s> Walk<'s> {
    /// Returns how often the schema applies an enclosing one to the same value. More than once would double
    /// the work with each level of the value.
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
            self.weigh(name, value)?;
            let is_inner_id = name == "$id" && depth > 0;
            if NOT_SUPPORTED.contains(&name.as_str()) || is_inner_id {
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

    /// Counts a keyword, and the part of its value that is not a schema.
    fn weigh(&mut self, name: &'s str, value: &'s Value) -> Result<(), String> {
        self.weight.values += 1;
        match (name, value) {
            ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
            ("patternProperties", Value::Object(all)) => {
                all.keys().try_for_each(|pattern| self.pattern(pattern))?;
            }
            ("anyOf" | "oneOf", _) => self.weight.has_alternatives = true,
            ("enum" | "const" | "required" | "type" | "dependentRequired" | "dependencies", _) => {
                self.weight.values += values_of(&value.to_string());
            }
            _ => {}
        }
        if self.weight.values > VALUES {
            return Err(format!("is made of more than {VALUES} values, references followed"));
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'s str) -> Result<(), String> {
        let size = match self.sizes.get(pattern) {
            Some(size) => *size,
            None => {
                let size = size_of(pattern)?;
                self.sizes.insert(pattern, size);
                size
            }
        };
        self.weight.patterns += size;
        if self.weight.patterns > PATTERNS {
            return Err("has patterns that are too large together".to_owned());
        }
        Ok(())
    }

    /// For schemas that all apply to the same value.
    fn sum(
        &mut self,
        all: impl IntoIterator<Item = &'s Value>,
        depth: usize,
    ) -> Result<usize, String> {
        all.into_iter().try_fold(0, |sum, schema| Ok(sum + self.schema(schema, depth + 1)?))
    }

    /// For schemas that each apply to a different part of the value.
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
        // A reference that leads nowhere is refused when the validator is built.
        let Some(schema) = self.root.pointer(pointer) else { return Ok(0) };
        self.path.push(place.to_owned());
        let again = self.schema(schema, depth + 1)?;
        self.path.pop();
        Ok(again)
    }
}

/// The size of a compiled pattern, in KiB.
fn size_of(pattern: &str) -> Result<usize, String> {
    let schema = json!({ "pattern": pattern });
    let fits = |kib: &usize| {
        jsonschema::options().offline().with_pattern_options(patterns(*kib)).build(&schema).is_ok()
    };
    PATTERN_SIZES.into_iter().find(fits).ok_or_else(|| {
        let start: String = pattern.chars().take(100).collect();
        format!(
            "has the pattern {start:?}, which is not valid, is too large, or has look-around or \
             back-references, which are not supported here"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Weight, check, values_of};

    fn weighed(schema: &Value) -> Result<Weight, String> {
        check(&schema.to_string(), schema)
    }

    fn checked(schema: &Value) -> Result<(), String> {
        weighed(schema).map(drop)
    }

    /// A chain of definitions, each of which contains the next one.
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
            (json!({ "items": { "unevaluatedProperties": false } }), "unevaluatedProperties"),
            (
                json!({
                    "allOf": vec![json!({ "$ref": "#/$defs/a" }); 6],
                    "$defs": { "a": { "enum": vec![0; 10_000] } },
                }),
                "more than 50000 values",
            ),
            (json!({ "pattern": "^(?=a)" }), "look-around"),
            (json!({ "patternProperties": { "(a)\\1": true } }), "back-references"),
            (json!({ "pattern": "(((a{1000}){1000}){1000})" }), "too large"),
            (
                json!({ "allOf": (0..500).map(|it| json!({ "pattern": format!("[ab]{{{}}}", 500 + it) }))
                .collect::<Vec<_>>() }),
                "too large together",
            ),
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

    #[test]
    fn what_an_answer_costs_goes_by_the_schema() {
        let long = |values: usize| format!("[{}1]", "1,".repeat(values - 2));
        let strings = weighed(&json!({ "items": { "type": "string" } })).unwrap();
        let cost = strings.cost(&long(90_000)).unwrap();
        assert!(!cost.is_small && !cost.can_tell_all && cost.can_tell_first);
        assert!(strings.cost("[1,2]").unwrap().is_small);
        assert!(strings.cost(&long(110_000)).unwrap_err().contains("more than 100000 values"));
        let names: Vec<String> = (0..2000).map(|it| it.to_string()).collect();
        let large = weighed(&json!({ "items": { "enum": names } })).unwrap();
        assert!(large.cost(&long(5000)).is_ok());
        assert!(large.cost(&long(50_000)).unwrap_err().contains("too large to be checked"));
        let either =
            weighed(&json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] })).unwrap();
        assert!(!either.cost(&long(90_000)).unwrap().can_tell_first);
        let matched = weighed(&json!({ "items": { "pattern": "[ab]*a[ab]{2000}" } })).unwrap();
        assert!(matched.cost(&format!("[\"{}\"]", "ab".repeat(1000))).is_ok());
        assert!(matched.cost(&format!("[\"{}\"]", "ab".repeat(200_000))).is_err());
        assert_eq!(values_of(r#"{"a,\"[":[1,"{",2]}"#), 6);
    }
}
