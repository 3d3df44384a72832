//! The approval policy, seen through an agent: what would ask is denied here, since nobody can answer.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

use crate::run::harness::code;
use crate::shared::{Home, text};

fn is_denied(home: &Home, flags: &[&str], prompt: &str) -> bool {
    let output = home.run(&[&["run", "-a", "demo"], flags, &[prompt]].concat());
    let is_denied = code(output.status) == Some(4);
    assert_eq!(text(&output.stderr).contains("denied"), is_denied, "{}", text(&output.stderr));
    is_denied
}

#[test]
fn its_own_files_ask_in_every_mode_and_under_every_rule() {
    let home = Home::new();
    let (data, work) = (home.work().join("../data"), home.work());
    fs::DirBuilder::new().mode(0o700).create(&data).expect("a directory");
    fs::write(data.join("secret"), "x").expect("a file");
    std::os::unix::fs::symlink(&data, work.join("notes")).expect("a link");
    let whole = data.canonicalize().expect("it exists").join("secret");
    let rules = ["--allow", "Bash", "--allow", "Edit"];
    for flags in [&["--approval", "autoAll"][..], &rules, &["--approval", "askDangerous"]] {
        for prompt in [
            &format!("/bash cat {}", whole.display()),
            "/bash cat ../data/secret",
            "/bash cat notes/secret | head -n 1",
            "/bash cd .. && cat data/secret",
            "/bash grep -r x ..",
            "/write ../data/secret changed",
            "/write notes/secret changed",
        ] {
            assert!(is_denied(&home, flags, prompt), "{flags:?} {prompt}");
        }
    }
    assert_eq!(fs::read_to_string(&whole).expect("it exists"), "x");
    assert!(!is_denied(&home, &["--approval", "autoAll"], "/bash echo x > a && cat a"));
}

#[test]
fn no_program_runs_in_three_steps() {
    let home = Home::new();
    let git = home.work().join(".git");
    for directory in ["objects", "refs"] {
        fs::create_dir_all(git.join(directory)).expect("a directory");
    }
    let usual = "[core]\n\trepositoryformatversion = 0\n";
    fs::write(git.join("config"), usual).expect("a file");
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    let flags = ["--approval", "askDangerous"];
    // First the agent writes a program, which is allowed inside its directories.
    assert!(!is_denied(&home, &flags, "/write x touch ran"));
    fs::set_permissions(home.work().join("x"), fs::Permissions::from_mode(0o700)).expect("a mode");
    // Then it tries to make git run that program.
    let step = "/bash find -- . -maxdepth 0 -fprintf .git/config '[core] fsmonitor=./x'";
    assert!(is_denied(&home, &flags, step));
    assert_eq!(fs::read_to_string(git.join("config")).expect("it exists"), usual);
    // Git may run, but not where its configuration names a program.
    assert!(!is_denied(&home, &flags, "/bash git status"));
    fs::write(git.join("config"), format!("{usual}\tfsmonitor = ./x\n")).expect("a file");
    for command in ["/bash git status", "/bash git diff", "/bash git ls-files -m"] {
        assert!(is_denied(&home, &flags, command), "{command}");
    }
    assert!(!home.work().join("ran").exists(), "the program ran");
}
