//! Builds objects from values that are JSON already.

use super::Json;

/// Builds an object field by field, with the exact texts of its values. A repeated name is written twice.
#[derive(Clone, Debug, Default)]
pub struct JsonObject {
    /// The object without its closing brace; empty while there are no fields.
    text: String,
}

impl JsonObject {
    /// An object without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts with the exact text of this object. A value that is not an object counts as empty.
    pub fn extending(object: &Json<'_>) -> Self {
        let fields = object.get().trim_end().strip_suffix('}').unwrap_or_default();
        let is_empty = fields.trim_start().strip_prefix('{').is_none_or(|it| it.trim().is_empty());
        Self { text: if is_empty { String::new() } else { fields.to_owned() } }
    }

    /// Adds a field.
    #[must_use]
    pub fn raw(mut self, name: &str, value: &Json<'_>) -> Self {
        self.add(name, value);
        self
    }

    /// Adds a field, if there is a value.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<&Json<'_>>) -> Self {
        match value {
            Some(value) => self.raw(name, value),
            None => self,
        }
    }

    /// Adds a string field.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        self.raw(name, &Json::of(&value))
    }

    /// Adds a field.
    pub fn add(&mut self, name: &str, value: &Json<'_>) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push_str(Json::of(&name).get());
        self.text.push(':');
        self.text.push_str(value.get());
    }

    /// The object.
    pub fn finish(self) -> Json<'static> {
        self.unless_empty().unwrap_or(Json::EMPTY)
    }

    /// The object, or nothing if it has no fields.
    pub fn unless_empty(mut self) -> Option<Json<'static>> {
        if self.text.is_empty() {
            return None;
        }
        self.text.push('}');
        Some(Json::trusted(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_values_are_kept() {
        let number = Json::parse("1e400").expect("JSON");
        let object = JsonObject::new()
            .raw("n", &number)
            .text("a \"quoted\" name\n", "and\u{2028}text")
            .maybe("left out", None);
        let expected = r#"{"n":1e400,"a \"quoted\" name\n":"and\u2028text"}"#;
        assert_eq!(object.finish().get(), expected);
        assert!(JsonObject::new().unless_empty().is_none());
        assert_eq!(JsonObject::new().finish().get(), "{}");
    }

    #[test]
    fn an_object_is_extended_as_it_is() {
        for (object, expected) in [
            (r#"{"a": 1e400 }"#, r#"{"a": 1e400 ,"b":true}"#),
            ("{}", r#"{"b":true}"#),
            (" { } ", r#"{"b":true}"#),
            ("[1]", r#"{"b":true}"#),
        ] {
            let object = JsonObject::extending(&Json::parse(object).expect("JSON"));
            assert_eq!(object.raw("b", &Json::of(&true)).finish().get(), expected);
        }
    }
}
