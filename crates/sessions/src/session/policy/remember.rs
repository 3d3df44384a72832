//! What a session remembers of its answers: the narrowest rule for each, and how it is suggested to
//! clients.

use std::path::PathBuf;

use agentwire_dialects::describe::{Class, Description, Touches, suggestion};
use agentwire_protocol::Json;
use agentwire_protocol::event::input_digest;

use super::call::Call;
use super::disk::{Disk, Lookups};
use super::paths::{Pattern, Resolve};
use super::rules::{Detail, Rule, Subject};
use super::{Policy, shell};

/// How many answers of each kind a session remembers.
pub const REMEMBERED_LIMIT: usize = 256;

/// What "always" would store for a call.
#[derive(Debug)]
pub struct Always {
    /// Whether anything would be stored.
    pub is_kept: bool,
    /// How the request suggests it to clients (`updatedPermissions`), if that format can express it.
    pub suggestion: Option<Json<'static>>,
}

impl Policy {
    /// Answers the same question in the same way for the rest of the session. Returns the rule, or why
    /// there is none.
    pub fn remember(&mut self, call: &Description<'_>, allow: bool, disk: &dyn Disk) -> String {
        match self.kept_rule(&Call::of(call), allow, disk) {
            Ok(rule) => self.keep(rule, allow),
            Err(why) => format!("not remembered: {why}"),
        }
    }

    /// Keeps a rule that a client wrote for the rest of the session. Returns the rule; the error says why
    /// it cannot be kept.
    pub fn add(&mut self, text: &str, allow: bool) -> Result<String, String> {
        let rule = Rule::parse(self.tools, text, &self.dirs)
            .map_err(|why| format!("failed to parse the rule {text:?}: {why}"))?;
        Ok(self.keep(rule, allow))
    }

    pub fn always(&self, call: &Description<'_>, disk: &dyn Disk) -> Always {
        let rule = self.kept_rule(&Call::of(call), true, disk).ok();
        let suggestion = rule.as_ref().and_then(|rule| self.suggested(call, rule));
        Always { is_kept: rule.is_some(), suggestion }
    }

    /// A rule as a request suggests it; `None` if the format cannot express it.
    fn suggested(&self, call: &Description<'_>, rule: &Rule) -> Option<Json<'static>> {
        let name = call.name.as_deref()?;
        let contents: Vec<Option<String>> = match (&rule.detail, &call.touches) {
            (Detail::Any, _) => vec![None],
            (Detail::Command { words, .. }, _) => vec![Some(shell::quoted(words))],
            (Detail::Host { host, .. }, _) => vec![Some(format!("domain:{host}"))],
            (Detail::Files(..), Touches::Files { paths, .. }) => {
                let paths = paths.iter().map(|file| self.dirs.written(file));
                paths.map(|path| Some(format!("/{}", path?.display()))).collect()
            }
            (Detail::Files(..) | Detail::Paths(_) | Detail::Text(_) | Detail::Input(_), _) => {
                return None;
            }
        };
        Some(suggestion(name, contents))
    }

    fn keep(&mut self, rule: Rule, allow: bool) -> String {
        let kept = if allow { &mut self.allowed_here } else { &mut self.denied_here };
        let verb = if allow { "allowed" } else { "denied" };
        let words = format!("{verb} for this session: {}", rule.text);
        if kept.contains(&rule) {
            return words;
        }
        if kept.len() >= REMEMBERED_LIMIT {
            return format!(
                "not remembered: the session already has {REMEMBERED_LIMIT} such rules"
            );
        }
        kept.push(rule);
        words
    }

    /// The rule to store for this call, or why there is none.
    fn kept_rule(
        &self,
        call: &Call<'_>,
        allow: bool,
        disk: &dyn Disk,
    ) -> Result<Rule, &'static str> {
        let lookups = Lookups::new(disk);
        let resolve: Resolve<'_> = &|path| lookups.resolve(path);
        let (own, dirs) = (&self.own, &self.dirs);
        if allow && own.may_be_touched(call, dirs, resolve) {
            return Err("agentwire's own files are asked about every time");
        }
        let rule = self.rule_like(call, allow, resolve)?;
        match allow && lookups.are_over() {
            true => Err("its path is not certain"),
            false => Ok(rule),
        }
    }

    /// The narrowest rule that answers the same question again.
    fn rule_like(
        &self,
        call: &Call<'_>,
        allow: bool,
        resolve: Resolve<'_>,
    ) -> Result<Rule, &'static str> {
        if let Some((server, tool)) = &call.mcp {
            let subject = Subject::Mcp { server: server.to_string(), tool: Some(tool.to_string()) };
            return Ok(rule(format!("mcp__{server}__{tool}"), subject, Detail::Any));
        }
        if allow && call.warns {
            return Err("the agent warns about it, so it is asked about every time");
        }
        let name = || call.name.as_deref().map(str::to_owned).ok_or("the tool has no name");
        match (&call.touches, call.class) {
            (_, Class::Question) => {
                Err("the answer to a question does not apply to other questions")
            }
            (Touches::Command(command), class) => {
                let subject = Subject::Class(class);
                match &call.words {
                    Some(words) => {
                        let detail = Detail::Command { words: words.clone(), more: false };
                        Ok(rule(format!("Bash({})", shell::quoted(words)), subject, detail))
                    }
                    None if allow => Err("only a single simple command can be allowed from now on"),
                    None => {
                        let detail = Detail::Text(command.text.clone());
                        Ok(rule(format!("Bash({})", command.text), subject, detail))
                    }
                }
            }
            (Touches::Files { paths, are_all: true }, _) => {
                self.rule_for_files(call, paths, allow, resolve)
            }
            (Touches::Host(host), class) => {
                let detail = Detail::Host { host: host.clone(), below: false };
                Ok(rule(format!("WebFetch(domain:{host})"), Subject::Class(class), detail))
            }
            (_, Class::Shell) if allow => {
                Err("only a single simple command can be allowed from now on")
            }
            // The input of a tool that only thinks changes nothing.
            (Touches::Nothing, Class::Think) => {
                let name = name()?;
                Ok(rule(name.clone(), Subject::Tool(name), Detail::Any))
            }
            (Touches::Nothing | Touches::Unclear | Touches::Files { .. }, _) => {
                let name = name()?;
                let digest = input_digest(call.input.as_ref());
                let text = format!("{name} with this input");
                Ok(rule(text, Subject::Tool(name), Detail::Input(digest)))
            }
        }
    }

    /// The same, for a call whose files are all known.
    fn rule_for_files(
        &self,
        call: &Call<'_>,
        files: &[String],
        allow: bool,
        resolve: Resolve<'_>,
    ) -> Result<Rule, &'static str> {
        let class = call.class;
        let paths = files.iter().map(|file| self.dirs.written(file));
        let paths: Option<Vec<_>> = paths.collect();
        let paths = paths.ok_or("its path is not certain")?;
        let texts: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        if !allow {
            let patterns = paths.into_iter().map(Pattern::exactly).collect();
            let text = format!("{}({})", class.as_str(), texts.join(", "));
            return Ok(rule(text, Subject::Class(class), Detail::Paths(patterns)));
        }
        if files.iter().any(|file| call.is_adrift(file)) {
            return Err("its path is not certain after a shell command ran");
        }
        // Listing a directory is not searching it, so for tools that read, the rule covers only the same
        // tool.
        let reads = matches!(class, Class::Read | Class::Search);
        let known = call.name.as_deref().filter(|name| self.tools.find(name).is_some());
        let (who, subject) = match known.filter(|_| reads) {
            Some(name) => (name, Subject::Tool(name.to_owned())),
            None => (class.as_str(), Subject::Class(class)),
        };
        let files = self.readings(files, resolve).ok_or("its path is not certain")?;
        Ok(rule(format!("{who}({})", texts.join(", ")), subject, Detail::Files(class, files)))
    }

    /// Every file that these paths may mean now. If a link changes later, the path means another file.
    fn readings(&self, files: &[String], resolve: Resolve<'_>) -> Option<Vec<PathBuf>> {
        let mut all = Vec::new();
        for file in files {
            all.extend(self.dirs.read(file, resolve)?.iter().map(PathBuf::from));
        }
        Some(all)
    }
}

fn rule(text: String, subject: Subject, detail: Detail) -> Rule {
    Rule { text, subject, detail }
}
