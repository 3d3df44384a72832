//! Typed reading of scanned values. A field of an unexpected type reads as absent and stays in the residue.

use std::borrow::Cow;

use agentwire_protocol::{Json, Text};

use super::scan::{Document, ESCAPED, Kind, Node};

#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    document: Document<'d>,
    index: usize,
}

impl<'d> Value<'d> {
    pub(super) fn new(document: Document<'d>, index: usize) -> Self {
        Self { document, index }
    }

    #[inline]
    fn node(self) -> Option<&'d Node> {
        self.document.nodes.get(self.index)
    }

    #[inline]
    fn kind(self) -> Kind {
        self.node().map_or(Kind::Null, |node| node.kind)
    }

    #[inline]
    fn slice(self) -> &'d str {
        let span = self.node().map(|node| node.start as usize..node.end as usize);
        span.and_then(|span| self.document.text.get(span)).unwrap_or("null")
    }

    #[inline]
    fn mark(self) {
        if let Some(node) = self.node() {
            node.seen.set(true);
        }
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    #[inline]
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    pub fn is_string(self) -> bool {
        self.kind() == Kind::String
    }

    /// The field of that name, if this is an object that has it and it is not `null`.
    pub fn get(self, name: &str) -> Option<Value<'d>> {
        let (mut at, end) = self.children(Kind::Object);
        while at < end {
            let (key, value) = (Value::new(self.document, at), Value::new(self.document, at + 1));
            at = value.node()?.next as usize;
            if key.is_name(name) && !value.is_null() {
                return Some(value);
            }
        }
        None
    }

    /// Calls `each` with every field of an object. Names are passed as bytes, which are compared without
    /// checking first that they are characters; names of messages have no escapes, so few are decoded.
    #[inline]
    pub(crate) fn each_field(self, mut each: impl FnMut(&[u8], Value<'d>)) {
        let (mut at, end) = self.children(Kind::Object);
        while at < end {
            let (key, value) = (Value::new(self.document, at), Value::new(self.document, at + 1));
            let (Some(name), Some(node)) = (key.node(), value.node()) else { return };
            at = node.next as usize;
            if name.flags & ESCAPED == 0 {
                each(key.inside(name), value);
            } else if let Some(name) = key.decode() {
                each(name.as_bytes(), value);
            }
        }
    }

    /// Whether this string is that text.
    #[inline]
    fn is_name(self, name: &str) -> bool {
        match self.node() {
            Some(node) if node.flags & ESCAPED == 0 => {
                let length = (node.end - node.start) as usize;
                length == name.len() + 2 && self.inside(node) == name.as_bytes()
            }
            _ => self.decode().is_some_and(|text| text == name),
        }
    }

    /// The bytes between the quotes of this string.
    #[inline]
    fn inside(self, node: &Node) -> &'d [u8] {
        let span = node.start as usize + 1..node.end as usize - 1;
        self.document.text.as_bytes().get(span).unwrap_or_default()
    }

    pub fn read<T: Read<'d>>(self, name: &str) -> Option<T> {
        self.get(name).and_then(T::read)
    }

    pub fn to<T: Read<'d>>(self) -> Option<T> {
        T::read(self)
    }

    pub fn string(self) -> Option<Cow<'d, str>> {
        self.to()
    }

    pub fn is(self, text: &str) -> bool {
        self.string().is_some_and(|string| string == text)
    }

    /// The fields of an object in order; empty for any other value.
    #[inline]
    pub fn fields(self) -> Fields<'d> {
        let (at, end) = self.children(Kind::Object);
        Fields { document: self.document, at, end }
    }

    /// The elements of an array; empty for any other value.
    pub fn items(self) -> Items<'d> {
        let (at, end) = self.children(Kind::Array);
        Items { document: self.document, at, end }
    }

    #[inline]
    fn children(self, kind: Kind) -> (usize, usize) {
        match self.node() {
            Some(node) if node.kind == kind => {
                if node.next as usize == self.index + 1 {
                    self.mark();
                }
                (self.index + 1, node.next as usize)
            }
            _ => (0, 0),
        }
    }

    /// Its exact text. Marks it and everything in it as read.
    pub fn json(self) -> Json<'d> {
        self.mark();
        Json::trusted(self.slice())
    }

    /// The same for passing on to a client: no event carries it, so it does not count as read.
    pub(crate) fn copy(self) -> Json<'d> {
        Json::trusted(self.slice())
    }

    /// Marks it and everything in it as read: its content is carried in another way.
    pub fn carried(self) {
        self.mark();
    }
}

#[derive(Clone, Debug)]
pub struct Fields<'d> {
    document: Document<'d>,
    at: usize,
    end: usize,
}

impl<'d> Iterator for Fields<'d> {
    type Item = (Cow<'d, str>, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let key = Value::new(self.document, self.at);
        let value = Value::new(self.document, self.at + 1);
        self.at = value.node()?.next as usize;
        Some((key.decode()?, value))
    }
}

#[derive(Clone, Debug)]
pub struct Items<'d> {
    document: Document<'d>,
    at: usize,
    end: usize,
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    #[inline]
    fn next(&mut self) -> Option<Value<'d>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value::new(self.document, self.at);
        self.at = value.node()?.next as usize;
        Some(value)
    }
}

impl<'d> Value<'d> {
    #[inline]
    fn decode(self) -> Option<Cow<'d, str>> {
        let node = self.node()?;
        if node.kind != Kind::String {
            return None;
        }
        if node.flags & ESCAPED != 0 {
            return serde_json::from_str(self.slice()).ok().map(Cow::Owned);
        }
        self.document.text.get(node.start as usize + 1..node.end as usize - 1).map(Cow::Borrowed)
    }
}

/// A type that can be read from a value. `None` if the value has another type.
pub trait Read<'d>: Sized {
    /// Reads it, and marks it as read.
    fn read(value: Value<'d>) -> Option<Self>;
}

impl<'d> Read<'d> for Value<'d> {
    fn read(value: Value<'d>) -> Option<Self> {
        (!value.is_null()).then_some(value)
    }
}

impl<'d> Read<'d> for Text<'d> {
    fn read(value: Value<'d>) -> Option<Self> {
        if !value.is_string() {
            return None;
        }
        value.mark();
        Some(Text::quoted(value.slice()))
    }
}

impl<'d> Read<'d> for Cow<'d, str> {
    fn read(value: Value<'d>) -> Option<Self> {
        let text = value.decode()?;
        value.mark();
        Some(text)
    }
}

impl<'d> Read<'d> for Json<'d> {
    fn read(value: Value<'d>) -> Option<Self> {
        (!value.is_null()).then(|| value.json())
    }
}

impl<'d> Read<'d> for bool {
    fn read(value: Value<'d>) -> Option<Self> {
        let read = match value.kind() {
            Kind::True => true,
            Kind::False => false,
            _ => return None,
        };
        value.mark();
        Some(read)
    }
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl<'d> Read<'d> for $type {
            fn read(value: Value<'d>) -> Option<Self> {
                if value.kind() != Kind::Number {
                    return None;
                }
                let read = value.slice().parse().ok()?;
                value.mark();
                Some(read)
            }
        }
    )*};
}

number!(u64, i64, f64);

impl<'d, T: Read<'d>> Read<'d> for Vec<T> {
    fn read(value: Value<'d>) -> Option<Self> {
        value.is_array().then(|| value.items().filter_map(T::read).collect())
    }
}

/// Declares a message: a struct whose fields are all optional, read in one pass over an object. A field of
/// another type reads as absent.
macro_rules! wire {
    ($($(#[$doc:meta])* struct $name:ident { $($field:ident: $type:ty = $key:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub(super) struct $name<'d> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) borrows: std::marker::PhantomData<&'d str>,
        }

        impl<'d> $crate::json::Read<'d> for $name<'d> {
            fn read(value: $crate::json::Value<'d>) -> Option<Self> {
                if !value.is_object() {
                    return None;
                }
                let mut read = Self::default();
                value.each_field(|name, field| match name {
                    $(_ if name == $key.as_bytes() => {
                        read.$field = $crate::json::Read::read(field);
                    })*
                    _ => {}
                });
                Some(read)
            }
        }
    )*};
}

pub(crate) use wire;
