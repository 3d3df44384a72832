//! Values that are checked while they are read, so that an error has a line number. Environment
//! variables pass the same checks.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use agentwire_sessions::process::ContainmentChoice;
use agentwire_sessions::settings::StoreKind;
use agentwire_sessions::trust::TrustPolicy;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

/// About 31 years: sums with the clock's time cannot overflow.
const MOST_SECONDS: f64 = 1e9;

/// A duration; 0 is valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) Duration);

impl Seconds {
    pub(super) fn new(seconds: f64) -> Result<Self, String> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if seconds <= MOST_SECONDS => Ok(Self(duration)),
            _ => Err(format!("{seconds} is not a number of seconds from 0 to {MOST_SECONDS}")),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(number(deserializer)?).map_err(de::Error::custom)
    }
}

/// A duration above 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct PositiveSeconds(pub(super) Duration);

impl<'de> Deserialize<'de> for PositiveSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Seconds(duration) = Seconds::deserialize(deserializer)?;
        if duration.is_zero() {
            return Err(de::Error::custom("must be more than 0 seconds"));
        }
        Ok(Self(duration))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Dollars(pub(super) f64);

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match number(deserializer)? {
            dollars if dollars.is_finite() && dollars >= 0.0 => Ok(Self(dollars)),
            dollars => Err(de::Error::custom(format!("{dollars} is not a price"))),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) program: String,
    pub(super) args: Vec<String>,
}

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ProgramVisitor;
        impl<'de> Visitor<'de> for ProgramVisitor {
            type Value = Program;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a program, or a list of a program and its arguments")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Program, E> {
                if text.is_empty() {
                    return Err(E::custom("the program has no name"));
                }
                Ok(Program { program: at_home(text), args: Vec::new() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Program, A::Error> {
                let Some(program) = list.next_element::<String>()? else {
                    return Err(de::Error::custom(
                        "the list is empty; its first entry is the program",
                    ));
                };
                let mut read = self.visit_str::<A::Error>(&program)?;
                while let Some(arg) = list.next_element()? {
                    read.args.push(arg);
                }
                Ok(read)
            }
        }
        deserializer.deserialize_any(ProgramVisitor)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Directory(pub(super) PathBuf);

impl<'de> Deserialize<'de> for Directory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let path = PathBuf::from(at_home(&text));
        if path.is_absolute() {
            return Ok(Self(path));
        }
        Err(de::Error::custom(format!("{text} must start with `/` or `~/`")))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) SocketAddr);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| {
            de::Error::custom(format!("`{text}` is not an address such as 127.0.0.1:8080"))
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StoreName(pub(super) StoreKind);

impl StoreName {
    pub(super) fn new(name: &str) -> Result<Self, String> {
        match name {
            "sqlite" => Ok(Self(StoreKind::Sqlite)),
            "memory" => Ok(Self(StoreKind::Memory)),
            // The rest of the URL may contain a password.
            url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Err("this version of agentwire has no PostgreSQL store; use `sqlite` or `memory`"
                    .to_owned())
            }
            other => Err(format!("unknown store `{other}`, expected `sqlite` or `memory`")),
        }
    }
}

impl<'de> Deserialize<'de> for StoreName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ContainmentName(pub(super) ContainmentChoice);

impl ContainmentName {
    pub(super) fn new(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self(ContainmentChoice::Auto)),
            "namespace" => Ok(Self(ContainmentChoice::Namespace)),
            "keeper" => Ok(Self(ContainmentChoice::Keeper)),
            other => Err(format!(
                "unknown containment `{other}`, expected `auto`, `namespace` or `keeper`"
            )),
        }
    }
}

impl<'de> Deserialize<'de> for ContainmentName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// What to do with a project's own files that are not trusted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrustName(pub(super) TrustPolicy);

impl TrustName {
    pub(super) fn new(name: &str) -> Result<Self, String> {
        match name {
            "ask" => Ok(Self(TrustPolicy::Ask)),
            "always" => Ok(Self(TrustPolicy::Always)),
            "never" => Ok(Self(TrustPolicy::Never)),
            other => Err(format!("unknown trust `{other}`, expected `ask`, `always` or `never`")),
        }
    }
}

impl<'de> Deserialize<'de> for TrustName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Integers and floats, with a readable error for anything else.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    struct NumberVisitor;
    impl Visitor<'_> for NumberVisitor {
        type Value = f64;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a number")
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }
    }
    deserializer.deserialize_any(NumberVisitor)
}

/// A whole number from 1, with a readable error for anything else.
pub(super) fn count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NonZeroUsize>, D::Error> {
    struct Count;
    impl Visitor<'_> for Count {
        type Value = NonZeroUsize;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a whole number, 1 or more")
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<NonZeroUsize, E> {
            let count = usize::try_from(number).ok().and_then(NonZeroUsize::new);
            count.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
        }
    }
    deserializer.deserialize_any(Count).map(Some)
}

/// `~/` stands for the home directory, as in a shell.
fn at_home(text: &str) -> String {
    let home = || Some(std::env::home_dir()?.join(text.strip_prefix("~/")?));
    match home().map(PathBuf::into_os_string).map(std::ffi::OsString::into_string) {
        Some(Ok(path)) => path,
        Some(Err(_)) | None => text.to_owned(),
    }
}

macro_rules! schemas {
    ($($type:ident: $schema:tt,)*) => {
        $(impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

schemas! {
    Seconds: {"type": "number", "minimum": 0, "maximum": MOST_SECONDS},
    PositiveSeconds: {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS},
    Dollars: {"type": "number", "minimum": 0},
    Program: {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ]
    },
    Address: {
        "type": "string",
        "pattern": "^([0-9]{1,3}([.][0-9]{1,3}){3}|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}$"
    },
    Directory: {"type": "string", "pattern": "^(/|~/)"},
    StoreName: {"enum": ["sqlite", "memory"]},
    TrustName: {"enum": ["ask", "always", "never"]},
    ContainmentName: {"enum": ["auto", "namespace", "keeper"]},
}
