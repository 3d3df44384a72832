//! Arguments and variables of an agent's program that would disable what the gateway judges by: its hook,
//! its questions, its mode, its wire. Each dialect's folder lists them (`overrides.rs`).

use agentwire_protocol::{ErrorCode, GatewayError, SessionConfig};

/// How a program parses its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentParser {
    /// `--name value` and `--name=value`; no abbreviations. Commander.
    Exact,
    /// The same, and several one-letter flags in one word. The first flag with a value takes the rest of
    /// the word, and an unknown letter is an error. Clap.
    Clusters {
        /// Letters that take a value.
        with_value: &'static str,
    },
    /// Several one-letter flags in one word: every letter up to the first character that is not a letter,
    /// digit or underscore, whether or not the flags take a value. Also `--no-name`, `--someName` for
    /// `--some-name`, `--n` for `-n`, and one dash instead of two. Yargs.
    Loose,
}

/// One refused argument or variable.
#[derive(Clone, Copy, Debug)]
pub struct RefusedOption {
    /// Every spelling: `--name`, `-n`, or the name of a variable.
    pub names: &'static [&'static str],
    /// For an argument that takes settings: the refused ones. Empty means all.
    pub settings: &'static [&'static str],
    pub instead: &'static str,
}

/// A file that an administrator of the machine writes and that the agent obeys before anything else.
#[derive(Clone, Copy, Debug)]
pub struct MachineFile {
    /// A file, or a directory of such files.
    pub path: &'static str,
    /// The extension of the files in a directory.
    pub ending: &'static str,
    /// The variable that overrides the path.
    pub variable: Option<&'static str>,
    /// What its text does to the gateway's rules, if anything.
    pub find_override: fn(&str) -> Option<FileOverride>,
}

/// Rule files by which an agent runs calls without asking: in its own directory and in the project.
#[derive(Clone, Copy, Debug)]
pub struct OwnRuleFiles {
    /// The tools whose gateway rules they bypass, by our names.
    pub tools: &'static [&'static str],
    /// The variable that names its own directory.
    pub home: &'static str,
    /// The name of that directory, in the home directory and in a project.
    pub directory: &'static str,
    /// Where the rules are in that directory.
    pub rules: &'static str,
    pub ending: &'static str,
    /// The word in a file that allows something.
    pub allows: &'static str,
}

/// What a file on the machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOverride {
    /// What is wrong with it.
    pub what: &'static str,
    pub remedy: &'static str,
}

/// What is known about a program.
#[derive(Clone, Copy, Debug)]
pub struct RefusedOptions {
    /// The agent's name in refusals.
    pub agent: &'static str,
    pub parser: ArgumentParser,
    pub arguments: &'static [RefusedOption],
    /// Variables that are refused, whatever their value.
    pub variables: &'static [RefusedOption],
}

impl RefusedOptions {
    /// Refuses arguments by name. `whose` says where they were given.
    pub fn check_arguments(&self, args: &[String], whose: &str) -> Result<(), GatewayError> {
        for (at, arg) in args.iter().enumerate() {
            if arg == "--" {
                let instead = "the program would ignore options that agentwire adds after it";
                return Err(self.refusal("--", whose, instead));
            }
            let next = args.get(at + 1).map(String::as_str);
            let found = self.arguments.iter().find_map(|option| {
                let refuses_by = |name: &&&str| self.refuses(option, name, arg, next);
                option.names.iter().find(refuses_by).map(|name| (*name, option.instead))
            });
            if let Some((name, instead)) = found {
                return Err(self.refusal(name, whose, instead));
            }
        }
        Ok(())
    }

    pub fn check_variables<'v>(
        &self,
        names: impl IntoIterator<Item = &'v String>,
        whose: &str,
    ) -> Result<(), GatewayError> {
        for given in names {
            let found = self.variables.iter().find(|it| it.names.contains(&given.as_str()));
            if let Some(found) = found {
                return Err(self.refusal(given, whose, found.instead));
            }
        }
        Ok(())
    }

    /// Whether agents do not inherit that variable. If it names a file on the machine, that file is
    /// inspected instead.
    pub fn keeps_out(&self, variable: &str, files: &[MachineFile]) -> bool {
        let is_machine = files.iter().any(|file| file.variable == Some(variable));
        !is_machine && self.variables.iter().any(|it| it.names.contains(&variable))
    }

    /// Refuses arguments and variables in a session's config.
    pub fn check(&self, config: &SessionConfig) -> Result<(), GatewayError> {
        let args = config.native_args.as_deref().unwrap_or_default();
        self.check_arguments(args, "nativeArgs")?;
        self.check_variables(config.env.iter().flatten().map(|(name, _)| name), "env")
    }

    fn refusal(&self, name: &str, whose: &str, instead: &str) -> GatewayError {
        let message = format!(
            "{} does not support {name} in {whose}: agentwire could not enforce its rules and modes; {instead}",
            self.agent
        );
        GatewayError::new(ErrorCode::Unsupported, message)
    }

    /// Whether an argument is that flag, in any spelling that the program accepts, with a refused value.
    fn refuses(&self, flag: &RefusedOption, name: &str, arg: &str, next: Option<&str>) -> bool {
        let (word, value) = match arg.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (arg, None),
        };
        if self.is(name, word) {
            return flag.is_set(value.or(next));
        }
        let letter = name.strip_prefix('-').filter(|name| !name.starts_with('-'));
        let rest = letter.and_then(|letter| self.after_letter(letter, arg));
        rest.is_some_and(|rest| {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            flag.is_set(if rest.is_empty() { next } else { Some(value) })
        })
    }

    /// Whether an argument without its value is that flag and nothing else.
    fn is(&self, name: &str, word: &str) -> bool {
        match self.parser {
            ArgumentParser::Exact => word == name,
            ArgumentParser::Clusters { .. } => name.starts_with("--") && word == name,
            ArgumentParser::Loose => {
                // One dash and letters are a cluster.
                let dashes = if name.starts_with("--") { "-" } else { "--" };
                let given = word.trim_start_matches('-');
                let given = given.strip_prefix("no-").unwrap_or(given);
                // Of `--a.b` the part before the dot is the flag.
                let given = given.split('.').next().unwrap_or_default();
                word.starts_with(dashes) && plain(given) == plain(name)
            }
        }
    }

    /// The rest of an argument after a one-letter flag, if the program reads that letter there as a flag.
    fn after_letter<'a>(&self, letter: &str, arg: &'a str) -> Option<&'a str> {
        let mut rest = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        let mut is_first = true;
        while let Some(next) = rest.chars().next() {
            if self.parser == ArgumentParser::Loose
                && !is_first
                && !(next.is_ascii_alphanumeric() || next == '_')
            {
                return None;
            }
            if let Some(after) = rest.strip_prefix(letter) {
                return match self.parser {
                    ArgumentParser::Exact => None,
                    ArgumentParser::Clusters { .. } | ArgumentParser::Loose => Some(after),
                };
            }
            if let ArgumentParser::Clusters { with_value } = self.parser
                && with_value.contains(next)
            {
                return None;
            }
            rest = rest.get(next.len_utf8()..)?;
            is_first = false;
        }
        None
    }
}

impl RefusedOption {
    /// Refused with every value.
    pub const fn any(names: &'static [&'static str], instead: &'static str) -> Self {
        Self { names, settings: &[], instead }
    }

    /// Whether its value, if that matters, is a refused one. A value that cannot be seen counts as refused.
    fn is_set(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return true };
        // A key may be quoted, or come at the end of a path.
        self.settings.is_empty() || self.settings.iter().any(|setting| value.contains(setting))
    }
}

/// Without case and dashes: `approval-mode` equals `approvalMode`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENTS: &[RefusedOption] = &[
        RefusedOption::any(&["--yes", "-y"], "x"),
        RefusedOption::any(&["--some-mode"], "x"),
        RefusedOption { names: &["--config", "-c"], settings: &["policy"], instead: "x" },
    ];

    fn refuses(parser: ArgumentParser, args: &[&str]) -> bool {
        let options = RefusedOptions { agent: "a", parser, arguments: ARGUMENTS, variables: &[] };
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        options.check_arguments(&args, "args").is_err()
    }

    #[test]
    fn every_spelling_that_a_parser_takes_is_refused() {
        use ArgumentParser::{Clusters, Exact, Loose};
        let clap = Clusters { with_value: "cm" };
        for (args, exact, clusters, loose) in [
            (&["--yes"][..], true, true, true),
            (&["-y"], true, true, true),
            (&["-xy"], false, true, true),
            (&["-abdefghy"], false, true, true),
            (&["-abdefghyz=1"], false, true, true),
            (&["-1_y"], false, true, true),
            (&["-y.x=1"], false, true, true),
            // Yargs reads any first character as a flag.
            (&["-=y"], false, true, true),
            // Clap reads this as a value of `m`, Yargs as flags.
            (&["-mmy-model"], false, false, true),
            (&["-vmy-model"], false, false, true),
            (&["-m", "my-model"], false, false, false),
            (&["-m=my-model"], false, false, false),
            (&["-m/my/model"], false, false, false),
            (&["--y"], false, false, true),
            (&["--y=true"], false, false, true),
            (&["--no-y"], false, false, true),
            (&["--some-mode", "a"], true, true, true),
            (&["--some-mode=a"], true, true, true),
            (&["--someMode=a"], false, false, true),
            (&["-some-mode", "a"], false, false, true),
            (&["--no-yes"], false, false, true),
            (&["--some-mode.x=1"], false, false, true),
            (&["--config", "policy=1"], true, true, true),
            (&["--config=a.policy=1"], true, true, true),
            (&["-cpolicy=1"], false, true, true),
            (&["-c", "policy=1"], true, true, true),
            (&["-xc", "policy=1"], false, true, true),
            (&["-xcpolicy=1"], false, true, true),
            (&["-xc", "model=1"], false, false, false),
            (&["-c=model", "policy"], false, false, false),
            (&["-c", "model=1"], false, false, false),
            (&["--config"], true, true, true),
            (&["--"], true, true, true),
            (&["--yesterday", "--model=x", "yes", "--verbose"], false, false, false),
        ] {
            assert_eq!(refuses(Exact, args), exact, "{args:?}");
            assert_eq!(refuses(clap, args), clusters, "{args:?}");
            assert_eq!(refuses(Loose, args), loose, "{args:?}");
        }
    }
}
