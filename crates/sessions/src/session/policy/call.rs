//! A call as the judge sees it: its description, and its command read as a shell reads it.

use std::cell::OnceCell;
use std::ops::Deref;

use agentwire_dialects::describe::{Class, Description, Form, ShellCommand, Touches};
use agentwire_protocol::event::input_digest;

use super::shell::{self, Mention, Said};

/// A call that is judged.
#[derive(Debug)]
pub(super) struct Call<'a> {
    described: &'a Description<'a>,
    /// The words of its command, if that is one simple command beyond doubt.
    pub(super) words: Option<Vec<String>>,
    /// The digest of its input, made when the first rule wants it.
    digest: OnceCell<String>,
    /// Its command, split when the first rule wants it.
    said: OnceCell<Said>,
}

impl<'a> Deref for Call<'a> {
    type Target = Description<'a>;

    fn deref(&self) -> &Description<'a> {
        self.described
    }
}

impl<'a> Call<'a> {
    pub(super) fn of(described: &'a Description<'a>) -> Self {
        let words = match &described.touches {
            Touches::Command(command) => words(command),
            Touches::Nothing | Touches::Unclear | Touches::Files { .. } | Touches::Host(_) => None,
        };
        Self { described, words, digest: OnceCell::new(), said: OnceCell::new() }
    }

    pub(super) fn has_digest(&self, digest: &str) -> bool {
        *self.digest.get_or_init(|| input_digest(self.input.as_ref())) == digest
    }

    pub(super) fn mentions(&self, command: &ShellCommand, denied: &[String]) -> Mention {
        let said = || Said::new(&command.text, self.words.as_deref());
        self.said.get_or_init(said).mentions(denied)
    }

    /// Whether nobody knows from where that path leads.
    pub(super) fn is_adrift(&self, path: &str) -> bool {
        self.moved && !path.starts_with(['/', '~'])
    }

    /// Whether it reaches what is below the paths that it names, or may.
    pub(super) fn reaches_below(&self) -> bool {
        let reaches = |class: &Class| matches!(class, Class::Search | Class::Delete | Class::Move);
        let class = self.class;
        reaches(&class) || (class == Class::Unknown && self.suspects.iter().any(reaches))
    }

    /// Whether that is what it is called, by whomever.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name) || self.called.as_deref() == Some(name)
    }

    /// Whether it is a server's tool whose name is that of one of the agent's own.
    pub(super) fn only_sounds_like(&self, name: &str) -> bool {
        self.class == Class::Mcp && self.name.as_deref() != Some(name)
    }
}

fn words(command: &ShellCommand) -> Option<Vec<String>> {
    let read = shell::words(&command.text);
    match &command.form {
        Form::Shell => read,
        Form::Started => match read.as_deref().and_then(shell::unwrapped) {
            Some(inner) => shell::words(inner),
            None => read,
        },
        Form::Words(words) => match shell::unwrapped(words) {
            Some(inner) => shell::words(inner),
            // Whether these are run as they are or joined for a shell, they are the same.
            None => read.filter(|read| read == words),
        },
        Form::Unsure => None,
    }
}
