//! Files of a project that make an agent run something, and what they say.
//!
//! Each dialect lists the files that its agent reads. Somebody must trust them before the agent does.

mod markdown;
mod read;
#[cfg(test)]
mod tests;

pub use read::Reading;

/// A file of a project, or a directory of files, that makes an agent run something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path, from the directory that the agent works in.
    pub path: &'static str,
    /// The endings of the files that count, where the path is a directory of such files. They may lie
    /// deeper in it.
    pub endings: Option<&'static [&'static str]>,
    /// In which directories above the agent looks for it too.
    pub above: Above,
    /// The agent also looks for it in directories below, when it works on files there.
    pub below: bool,
    /// How its text is read.
    pub form: Form,
}

/// In which directories above the working directory an agent looks for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// In none.
    Nowhere,
    /// In those up to the root of the repository. Without a repository, in those up to the user's home
    /// directory, or all.
    Repository,
    /// In all of them.
    Everywhere,
}

/// How the text of a project file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Settings in JSON, with or without comments.
    Json,
    /// Settings in TOML.
    Toml,
    /// `NAME=value` lines.
    Variables,
    /// Markdown with fields at its top. It counts unless it is known to be only text.
    Markdown,
    /// A prompt in TOML with commands in `!{…}`. It counts unless it is known to be only text.
    Prompt,
    /// Anything else that the agent acts on. It is shown by its digest.
    Opaque,
    /// A script. It counts only beside files that can name it.
    Script,
}

impl ProjectFile {
    /// One file.
    pub const fn file(path: &'static str, form: Form, above: Above) -> Self {
        Self { path, endings: None, above, below: false, form }
    }

    /// All files of a directory that have one of these endings.
    pub const fn tree(
        path: &'static str,
        endings: &'static [&'static str],
        form: Form,
        above: Above,
    ) -> Self {
        Self { path, endings: Some(endings), above, below: false, form }
    }

    /// The same, also in directories below.
    pub const fn and_below(mut self) -> Self {
        self.below = true;
        self
    }

    /// Reads the text of such a file.
    pub fn read(&self, text: &str) -> Reading {
        read::read(self.form, text)
    }
}
