//! Project files that make an agent run something, and what they contain.
//!
//! Each dialect lists the files that its agent reads. Someone must trust them before the agent reads them.

mod markdown;
mod read;
#[cfg(test)]
mod tests;

pub use read::Reading;

/// A project file, or a directory of files, that makes an agent run something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// The path relative to the agent's working directory.
    pub path: &'static str,
    /// The extensions of the files that count, if the path is a directory. The files may be nested deeper
    /// in it.
    pub endings: Option<&'static [&'static str]>,
    /// In which parent directories the agent also looks for it.
    pub above: ParentSearch,
    /// The agent also looks for it in subdirectories when it works on files there.
    pub below: bool,
    pub form: FileFormat,
}

/// In which parent directories of the working directory an agent looks for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentSearch {
    Nowhere,
    /// Up to the root of the repository. Without a repository: up to the user's home directory, or all.
    Repository,
    Everywhere,
}

/// How the text of a project file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Settings in JSON, with or without comments.
    Json,
    Toml,
    /// `NAME=value` lines.
    Variables,
    /// Markdown with front matter. It counts unless it is known to be only text.
    Markdown,
    /// A prompt in TOML with commands in `!{…}`. It counts unless it is known to be only text.
    Prompt,
    /// Anything else that the agent acts on. Only its digest is shown.
    Opaque,
    /// A script. It counts only together with files that can name it.
    Script,
}

impl ProjectFile {
    pub const fn file(path: &'static str, form: FileFormat, above: ParentSearch) -> Self {
        Self { path, endings: None, above, below: false, form }
    }

    /// All files in a directory with one of these extensions.
    pub const fn tree(
        path: &'static str,
        endings: &'static [&'static str],
        form: FileFormat,
        above: ParentSearch,
    ) -> Self {
        Self { path, endings: Some(endings), above, below: false, form }
    }

    /// Also looks in subdirectories.
    pub const fn and_below(mut self) -> Self {
        self.below = true;
        self
    }

    pub fn read(&self, text: &str) -> Reading {
        read::read(self.form, text)
    }
}
