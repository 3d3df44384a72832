//! A call as the policy sees it: its description, and its command parsed like a shell would.

use std::cell::OnceCell;
use std::ops::Deref;

use agentwire_dialects::describe::{Class, CommandForm, Description, ShellCommand, Touches};
use agentwire_protocol::event::input_digest;

use super::shell::{self, CommandText, Mention};

#[derive(Debug)]
pub(super) struct Call<'a> {
    described: &'a Description<'a>,
    /// The words of its command, if that is certainly one simple command.
    pub(super) words: Option<Vec<String>>,
    /// The digest of its input, computed when the first rule needs it.
    digest: OnceCell<String>,
    /// Its command, split when the first rule needs it.
    command_text: OnceCell<CommandText>,
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
        Self { described, words, digest: OnceCell::new(), command_text: OnceCell::new() }
    }

    pub(super) fn has_digest(&self, digest: &str) -> bool {
        *self.digest.get_or_init(|| input_digest(self.input.as_ref())) == digest
    }

    pub(super) fn mentions(&self, command: &ShellCommand, denied: &[String]) -> Mention {
        let command_text = || CommandText::new(&command.text, self.words.as_deref());
        self.command_text.get_or_init(command_text).mentions(denied)
    }

    /// Whether it is unknown which directory that path starts from.
    pub(super) fn is_adrift(&self, path: &str) -> bool {
        self.moved && !path.starts_with(['/', '~'])
    }

    /// Whether it reaches what is below the paths that it names, or may reach it.
    pub(super) fn reaches_below(&self) -> bool {
        let reaches = |class: &Class| matches!(class, Class::Search | Class::Delete | Class::Move);
        let class = self.class;
        reaches(&class) || (class == Class::Unknown && self.suspects.iter().any(reaches))
    }

    /// Whether anyone calls it by that name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name) || self.called.as_deref() == Some(name)
    }

    /// Whether it is a server's tool with the same name as one of the agent's own tools.
    pub(super) fn only_sounds_like(&self, name: &str) -> bool {
        self.class == Class::Mcp && self.name.as_deref() != Some(name)
    }
}

fn words(command: &ShellCommand) -> Option<Vec<String>> {
    let read = shell::words(&command.text);
    match &command.form {
        CommandForm::Shell => read,
        CommandForm::Started => match read.as_deref().and_then(shell::unwrapped) {
            Some(inner) => shell::words(inner),
            None => read,
        },
        CommandForm::Words(words) => match shell::unwrapped(words) {
            Some(inner) => shell::words(inner),
            // Whether these are run directly or joined for a shell, they are the same.
            None => read.filter(|read| read == words),
        },
        CommandForm::Unsure => None,
    }
}
