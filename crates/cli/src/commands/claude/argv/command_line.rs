//! Splits a command line into flags and operands as the real program's parser (commander) does: a
//! required value is the next word in any case; an optional or further value must not look like a
//! flag.

use std::ffi::OsString;

use super::Refused;
use super::flag::{Flag, Takes};
use super::table::FLAGS;

#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLine {
    /// Flags in order, each with its value.
    pub(crate) flags: Vec<(&'static Flag, Option<String>)>,
    pub(crate) operands: Vec<String>,
    /// `--` comes before the first operand, so that is not a command.
    pub(crate) literal: bool,
}

impl CommandLine {
    /// Reads the program's flags and those of `own`. Ignores everything after `--version`.
    pub(crate) fn read(
        args: impl Iterator<Item = OsString>,
        own: &'static [Flag],
    ) -> Result<Self, Refused> {
        let mut args = args.enumerate().map(text).collect::<Result<Vec<_>, _>>()?.into_iter();
        let mut words = Self::default();
        let mut unknown = None;
        let mut variadic: Option<&'static Flag> = None;
        let mut cluster = None;
        while let Some(word) = cluster.take().or_else(|| args.next()) {
            if word == "--" {
                words.literal = words.operands.is_empty();
                words.operands.extend(args);
                break;
            }
            if !looks_like_flag(&word) {
                match variadic {
                    Some(flag) => words.put(flag, Some(word))?,
                    None => words.operands.push(word),
                }
                continue;
            }
            variadic = None;
            if let Some(flag) = find(&word, own) {
                let next_is_value =
                    args.as_slice().first().is_some_and(|next| !looks_like_flag(next));
                let value = match flag.takes {
                    Takes::Nothing => None,
                    Takes::Maybe(_) => next_is_value.then(|| args.next()).flatten(),
                    Takes::One(_) | Takes::Choice(..) | Takes::Many(_) => {
                        Some(args.next().ok_or_else(|| missing(flag))?)
                    }
                };
                words.put(flag, value)?;
                if flag.name() == "--version" {
                    break;
                }
                variadic = matches!(flag.takes, Takes::Many(_)).then_some(flag);
            } else if let Some((flag, rest)) = short(&word, own) {
                if flag.takes == Takes::Nothing {
                    words.put(flag, None)?;
                    cluster = Some(format!("-{rest}"));
                    if flag.name() == "--version" {
                        break;
                    }
                } else {
                    words.put(flag, Some(rest.to_owned()))?;
                }
            } else if let Some((flag, value)) = with_value(&word, own) {
                words.put(flag, Some(value.to_owned()))?;
            } else {
                unknown.get_or_insert(word);
            }
        }
        match unknown {
            // Help works in spite of unknown flags.
            Some(word) if !words.has("--help") && !words.has("--version") => {
                Err(unknown_option(&word, own))
            }
            Some(_) | None => Ok(words),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|(flag, _)| flag.name() == name)
    }

    fn put(&mut self, flag: &'static Flag, value: Option<String>) -> Result<(), Refused> {
        if let (Takes::Choice(_, choices), Some(value)) = (flag.takes, &value)
            && !choices.contains(&value.as_str())
        {
            let allowed = format!("Allowed choices are {}.", choices.join(", "));
            return Err(invalid(flag, value, &allowed));
        }
        self.flags.push((flag, value));
        Ok(())
    }
}

/// An error about the value of a flag.
pub(crate) fn invalid(flag: &Flag, value: &str, why: &str) -> Refused {
    Refused::new(format!("error: option '{}' argument '{value}' is invalid. {why}", flag.spelled()))
}

fn missing(flag: &Flag) -> Refused {
    Refused::new(format!("error: option '{}' argument missing", flag.spelled()))
}

fn text((index, arg): (usize, OsString)) -> Result<String, Refused> {
    arg.into_string().map_err(|arg| {
        let (number, shown) = (index + 1, arg.to_string_lossy());
        Refused::new(format!("error: argument {number} is not valid UTF-8: '{shown}'"))
    })
}

fn looks_like_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn find(name: &str, own: &'static [Flag]) -> Option<&'static Flag> {
    FLAGS.iter().chain(own).find(|flag| flag.names.contains(&name))
}

/// `-pc`: a known letter and the rest.
fn short<'w>(word: &'w str, own: &'static [Flag]) -> Option<(&'static Flag, &'w str)> {
    let letter = word.strip_prefix('-')?.chars().next().filter(|letter| *letter != '-')?;
    let (name, rest) = word.split_at_checked(1 + letter.len_utf8())?;
    Some((find(name, own)?, rest)).filter(|_| !rest.is_empty())
}

/// `--flag=value`, if the flag takes a value.
fn with_value<'w>(word: &'w str, own: &'static [Flag]) -> Option<(&'static Flag, &'w str)> {
    let (name, value) = word.split_once('=').filter(|(name, _)| name.starts_with("--"))?;
    let flag = find(name, own).filter(|flag| flag.takes != Takes::Nothing)?;
    Some((flag, value))
}

fn unknown_option(word: &str, own: &'static [Flag]) -> Refused {
    let message = format!("error: unknown option '{word}'");
    let known = FLAGS.iter().chain(own).filter(|flag| !flag.fates.nowhere());
    let names = known.flat_map(|flag| flag.names).filter(|name| name.starts_with("--"));
    let near = names
        .map(|name| (strsim::osa_distance(word, name), name))
        .filter(|(distance, _)| *distance < 3 && distance * 2 < word.len())
        .min_by_key(|(distance, _)| *distance);
    match near {
        Some((_, name)) if word.starts_with("--") => {
            Refused::new(format!("{message}\n(Did you mean {name}?)"))
        }
        Some(_) | None => Refused::new(message),
    }
}
