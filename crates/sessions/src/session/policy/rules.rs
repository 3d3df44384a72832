//! Rules: how they are written, and when one fits an agent's call.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use agentwire_dialects::describe::{AgentTools, Class, Touches, common_class};

use super::call::Call;
use super::paths::{Pattern, Readings, Resolve, SessionDirs};
use super::shell::{self, Mention};
use super::side_effects;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// As it is shown.
    pub(super) text: String,
    pub(super) subject: Subject,
    pub(super) detail: Detail,
}

/// Which tools a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// All tools of this class. The class for reading includes searching.
    Class(Class),
    /// The tool with this name.
    Tool(String),
    /// All tools of an MCP server, or one of them.
    Mcp { server: String, tool: Option<String> },
}

/// Which of their calls a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// All of them.
    Any,
    /// Commands with exactly these words, or that start with them.
    Command { words: Vec<String>, more: bool },
    /// Calls whose files each match one of these.
    Paths(Vec<Pattern>),
    /// Calls of this class with exactly these files, however the paths are read.
    Files(Class, Vec<PathBuf>),
    /// Calls to this host; or, if `below`, to the hosts in its domain.
    Host { host: String, below: bool },
    /// Exactly this shell text.
    Text(String),
    /// Exactly this input, by its digest.
    Input(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denial {
    Sure,
    /// It may fit, so nothing allows the call without asking.
    Possible,
    None,
}

/// What a call is compared with.
#[derive(Clone, Copy)]
pub(super) struct PathContext<'a> {
    pub(super) dirs: &'a SessionDirs,
    pub(super) resolve: Resolve<'a>,
}

impl Subject {
    fn class(&self, tools: &AgentTools) -> Option<Class> {
        match self {
            Self::Class(class) => Some(*class),
            Self::Tool(name) => tools.find(name).map(|tool| tool.class),
            Self::Mcp { .. } => None,
        }
    }
}

impl Rule {
    /// Parses a rule. The error says why it is invalid.
    pub(super) fn parse(
        tools: &AgentTools,
        text: &str,
        dirs: &SessionDirs,
    ) -> Result<Self, String> {
        let (name, content) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let content = rest.strip_suffix(')').ok_or("the closing bracket is missing")?;
                (name, Some(content).filter(|content| *content != "*"))
            }
        };
        let is_named = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
        let plain = name.strip_suffix("__*").filter(|name| name.starts_with("mcp__"));
        if name.is_empty() || !plain.unwrap_or(name).chars().all(is_named) {
            return Err("a rule is the name of a tool, or NAME(…)".to_owned());
        }
        let subject = subject(tools, name)?;
        let detail = match content {
            None => Detail::Any,
            Some(content) => detail(name, subject.class(tools), content, dirs)?,
        };
        Ok(Self { text: text.to_owned(), subject, detail })
    }

    /// Whether it certainly allows the call.
    pub(super) fn allows(&self, call: &Call<'_>, context: PathContext<'_>) -> bool {
        let is_subject = match &self.subject {
            Subject::Class(class) => covers(*class, call.class),
            Subject::Tool(name) => call.mcp.is_none() && call.name.as_deref() == Some(name),
            Subject::Mcp { server, tool } => {
                call.mcp.as_ref().is_some_and(|(own, own_tool)| match tool {
                    Some(tool) => own == server && own_tool == tool,
                    // `mcp__a__b__c` may belong to the server `a__b`.
                    None => own == server && !own_tool.contains("__"),
                })
            }
        };
        is_subject && self.detail.allows(call, context)
    }

    /// Whether it denies the call, or may deny it.
    pub(super) fn denies(&self, call: &Call<'_>, context: PathContext<'_>) -> Denial {
        let is_subject = match &self.subject {
            Subject::Class(class) => call.suspects.iter().any(|own| {
                covers(*class, *own)
                    || (*class == Class::Edit && matches!(own, Class::Delete | Class::Move))
            }),
            Subject::Tool(name) => call.is_called(name) && !call.only_sounds_like(name),
            Subject::Mcp { server, tool } => denies_mcp(server, tool.as_deref(), call),
        };
        // Without a class, only the name is known.
        let named = self.text.split('(').next().is_some_and(|name| call.is_called(name));
        if !is_subject && (!named || call.mcp.is_some()) {
            return Denial::None;
        }
        let sure = |is_sure| if is_sure { Denial::Sure } else { Denial::None };
        match (&self.detail, &call.touches) {
            (Detail::Any, _) => Denial::Sure,
            (Detail::Input(digest), _) => sure(call.has_digest(digest)),
            (Detail::Text(text), Touches::Command(command)) => sure(*text == command.text),
            (Detail::Text(_), _) => Denial::None,
            (Detail::Command { words, .. }, Touches::Command(command)) => {
                match (call.mentions(command, words), &call.words) {
                    (Mention::Plain, _) => Denial::Sure,
                    (Mention::Possible, _) | (Mention::None, None) => Denial::Possible,
                    (Mention::None, Some(_)) => Denial::None,
                }
            }
            (Detail::Paths(patterns), Touches::Files { paths, are_all }) => {
                let (dirs, resolve) = (context.dirs, context.resolve);
                let readings = paths.iter().map(|file| dirs.read(file, resolve));
                let readings: Vec<_> = readings.collect();
                let is_denied = readings
                    .iter()
                    .flatten()
                    .any(|path| patterns.iter().any(|pattern| pattern.denies(path, dirs, resolve)));
                // A search reaches what is below, and so does moving or deleting a directory.
                let is_adrift = paths.iter().any(|file| call.is_adrift(file));
                let may_reach = call.reaches_below() || is_adrift || !are_all;
                match (is_denied, may_reach || readings.iter().any(Option::is_none)) {
                    (true, _) => Denial::Sure,
                    (false, true) => Denial::Possible,
                    (false, false) => Denial::None,
                }
            }
            (Detail::Host { host, below }, Touches::Host(own)) => {
                sure(is_below(own, host) || (own == host && !below))
            }
            _ => Denial::Possible,
        }
    }

    /// Whether it names one call rather than a kind of call.
    pub(super) fn is_exact(&self) -> bool {
        match &self.detail {
            Detail::Command { more, .. } => !more,
            Detail::Files(..) | Detail::Text(_) | Detail::Input(_) => true,
            Detail::Any | Detail::Paths(_) | Detail::Host { .. } => false,
        }
    }

    /// Whether it allows a call outright, even if the agent may warn about it: it names that call or the
    /// whole tool.
    pub(super) fn is_outright(&self) -> bool {
        self.is_exact() || self.detail == Detail::Any
    }

    /// Whether it is about reading files. If so, commands that read files do not run without asking.
    pub(super) fn limits_reading(&self, tools: &AgentTools) -> bool {
        matches!(self.subject.class(tools), Some(Class::Read | Class::Search))
    }
}

impl Detail {
    /// Whether the call is certainly one that it names.
    fn allows(&self, call: &Call<'_>, context: PathContext<'_>) -> bool {
        match (self, &call.touches) {
            (Self::Any, _) => true,
            (Self::Input(digest), _) => call.has_digest(digest),
            (Self::Command { words, more }, Touches::Command(command)) => {
                let fits = call.words.as_ref().is_some_and(|own| match more {
                    true => {
                        own.starts_with(words) && !side_effects::has_side_effect(own, words.len())
                    }
                    false => own == words,
                });
                let here = command.directory.as_ref().is_none_or(|directory| {
                    let readings = context.dirs.read(directory, context.resolve);
                    readings.is_some_and(|path| context.dirs.hold(&path, context.resolve))
                });
                fits && here
            }
            (Self::Files(class, own), Touches::Files { paths, are_all: true }) => {
                let is_own = |path: &Path| own.iter().any(|own| own == path);
                *class == call.class
                    && all_read(paths, call, context, |readings| readings.iter().all(is_own))
            }
            (Self::Paths(patterns), Touches::Files { paths, are_all: true }) => {
                all_read(paths, call, context, |path| {
                    let (dirs, resolve) = (context.dirs, context.resolve);
                    patterns.iter().any(|pattern| pattern.allows(path, dirs, resolve))
                })
            }
            (Self::Host { host, below }, Touches::Host(own)) => match below {
                true => is_below(own, host),
                false => own == host,
            },
            _ => false,
        }
    }
}

/// Whether it is certain where each path leads, and everything it may mean fits.
fn all_read(
    paths: &[String],
    call: &Call<'_>,
    context: PathContext<'_>,
    fits: impl Fn(&Readings) -> bool,
) -> bool {
    paths.iter().all(|file| {
        let readings = context.dirs.read(file, context.resolve);
        !call.is_adrift(file) && readings.is_some_and(|readings| fits(&readings))
    })
}

fn covers(class: Class, own: Class) -> bool {
    class == own || (class == Class::Read && own == Class::Search)
}

/// Agents write a server's name in different ways, and `mcp__a__b` may be the server `a__b`. Everything
/// that the rule may mean is denied.
fn denies_mcp(server: &str, tool: Option<&str>, call: &Call<'_>) -> bool {
    let plain = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        name.replace(|c| !is_plain(c), "_")
    };
    let denied = plain(&match tool {
        Some(tool) => format!("mcp__{server}__{tool}"),
        None => format!("mcp__{server}"),
    });
    let own = match (&call.mcp, call.name.as_deref().or(call.called.as_deref())) {
        (Some((server, tool)), _) => Cow::Owned(format!("mcp__{server}__{tool}")),
        (None, Some(name)) => Cow::Borrowed(name),
        (None, None) => return false,
    };
    let own = plain(&own);
    let rest = own.strip_prefix(&denied);
    rest.is_some_and(|rest| rest.starts_with("__") || (rest.is_empty() && tool.is_some()))
}

fn is_below(own: &str, host: &str) -> bool {
    own.strip_suffix(host).is_some_and(|rest| rest.ends_with('.'))
}

/// `Bash`, `Edit` and `Read` are classes for every agent. Other names are the agent's own tools. If the
/// agent has no such tool, Claude's names mean their class.
fn subject(tools: &AgentTools, name: &str) -> Result<Subject, String> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        let (server, tool) = match (rest.strip_suffix("__*"), rest.split_once("__")) {
            (Some(server), _) => (server, None),
            (None, None) => (rest, None),
            (None, Some((server, tool))) => (server, Some(tool.to_owned())),
        };
        if server.is_empty() || tool.as_ref().is_some_and(String::is_empty) {
            return Err("write mcp__SERVER or mcp__SERVER__TOOL".to_owned());
        }
        return Ok(Subject::Mcp { server: server.to_owned(), tool });
    }
    let own = tools.find(name).map(|tool| tool.class);
    Ok(match (name, own) {
        ("Bash", _) | (_, Some(Class::Shell)) => Subject::Class(Class::Shell),
        ("Edit", _) => Subject::Class(Class::Edit),
        ("Read", _) => Subject::Class(Class::Read),
        (_, Some(_)) => Subject::Tool(name.to_owned()),
        (_, None) => match common_class(name) {
            Some(class) if class != Class::Unknown => Subject::Class(class),
            _ => Subject::Tool(name.to_owned()),
        },
    })
}

fn detail(
    name: &str,
    class: Option<Class>,
    content: &str,
    dirs: &SessionDirs,
) -> Result<Detail, String> {
    match class {
        Some(Class::Shell) => {
            let start = content.strip_suffix(":*").or_else(|| content.strip_suffix(" *"));
            let words = shell::words(start.unwrap_or(content))
                .ok_or("it must be the words of one simple command, which only :* may follow")?;
            Ok(Detail::Command { words, more: start.is_some() })
        }
        Some(Class::Read | Class::Search | Class::Edit | Class::Delete | Class::Move) => {
            Pattern::parse(content, dirs).map(|pattern| Detail::Paths(vec![pattern]))
        }
        Some(Class::Network) => {
            let host = content.strip_prefix("domain:").ok_or("write domain:HOST")?;
            let (host, below) = match host.strip_prefix("*.") {
                Some(host) => (host, true),
                None => (host, false),
            };
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
            if host.is_empty() || !host.bytes().all(plain) {
                return Err("domain: must be followed by a host name".to_owned());
            }
            let host = host.trim_matches('.').to_ascii_lowercase();
            Ok(Detail::Host { host, below })
        }
        _ => Err(format!("{name} takes nothing in brackets")),
    }
}
