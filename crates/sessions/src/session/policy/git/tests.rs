//! What a repository may contain, and what makes a read-only command ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Kind, Lookups, harmless, holds_submodule};
use crate::session::policy::{Disk, OnDisk};

/// A disk with these files; a path above a file is a directory.
struct Files(BTreeMap<PathBuf, Vec<u8>>);

fn disk(files: &[(&str, &str)]) -> Files {
    Files(
        files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect(),
    )
}

impl Disk for Files {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_path_buf())
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        Some(match self.0.contains_key(path) {
            true => Kind::File,
            false if self.0.keys().any(|own| own.starts_with(path)) => Kind::Directory,
            false => Kind::Missing,
        })
    }

    fn read(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        self.0.get(path).filter(|contents| contents.len() <= limit).cloned()
    }
}

fn runs_nothing(start: &Path, command: &str, home: Option<&Path>, disk: &dyn Disk) -> bool {
    super::runs_nothing(start, command, home, &Lookups::new(disk))
}

const USUAL: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
    \tlogallrefupdates = true\n# a comment\n[remote \"origin\"]\n\turl = git@host:a/b.git\n\
    \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\
    \tmerge = refs/heads/main\n\tvscode-merge-base = origin/main\n[user]\n\temail = a@b\n";

#[test]
fn a_usual_configuration_is_harmless() {
    assert_eq!(harmless(USUAL), Some(Vec::new()));
    assert_eq!(harmless(&USUAL.replace('\n', "\r\n")), Some(Vec::new()));
    assert_eq!(harmless(""), Some(Vec::new()));
    assert_eq!(harmless("[CORE]\nhooksPath = .husky/_\n"), Some(vec![".husky/_".to_owned()]));
}

#[test]
fn what_may_run_a_program_or_is_not_understood_asks() {
    for line in [
        "[core]\nfsmonitor = /tmp/x",
        "[core]\nfsmonitor",
        "[core] fsmonitor = /tmp/x",
        "[CoRe]\nFsMonitor = x",
        "[core]\npager = id",
        "[core]\nsshCommand = id",
        "[core]\ngitProxy = id",
        "[core]\neditor = id",
        "[core]\nworktree = /",
        "[core]\nattributesFile = x",
        "[core]\nexcludesFile = x",
        "[core]\nhooksPath = \"x\"",
        "[core]\nhooksPath = %(prefix)/x",
        "[core]\nhooksPath = x # y",
        "[core]\nhooksPath = x\ty",
        "[core]\nhooksPath = x\u{b}",
        "\u{a0}[core]\nbare = true",
        "[core]\nhooksPath",
        "[diff]\nexternal = id",
        "[diff \"x\"]\ntextconv = id",
        "[diff \"x\"]\ncommand = id",
        "[filter \"x\"]\nclean = id",
        "[filter \"lfs\"]\nprocess = id",
        "[gpg]\nprogram = id",
        "[log]\nshowSignature = true",
        "[include]\npath = x",
        "[includeIf \"gitdir:/\"]\npath = x",
        "[alias]\nst = !id",
        "[pager]\nstatus = id",
        "[interactive]\ndiffFilter = id",
        "[credential]\nhelper = id",
        "[remote \"o\"]\npromisor = true",
        "[remote \"o\"]\nuploadpack = id",
        "[remote \"o\"]\nvcs = id",
        "[extensions]\npartialClone = o",
        "[extensions]\nobjectFormat = sha256",
        "[submodule \"x\"]\nupdate = !id",
        "[hook \"x\"]\ncommand = id",
        "[status]\nsubmoduleSummary = true",
        "[feature]\nmanyFiles = true",
        "[lfs \"customtransfer.x\"]\npath = id",
        "[trailer \"x\"]\ncmd = id",
        "[merge \"x\"]\ndriver = id",
        "[user]\nname = a\\\n[core]\nfsmonitor = x",
        "[user]\nname = \\\"",
        "[user\nname = x",
        "[user \"x\nname = x",
        "[core.x]\nbare = true",
        "[core]\nba re = true",
        "\u{feff}[core]\nbare = true",
    ] {
        assert_eq!(harmless(&format!("{USUAL}{line}\n")), None, "{line}");
        assert_eq!(harmless(line), None, "{line}");
    }
    assert_eq!(harmless("bare = true"), None);
}

fn status(files: &[(&str, &str)]) -> bool {
    runs_nothing(Path::new("/a/b"), "status", Some(Path::new("/home/u")), &disk(files))
}

#[test]
fn every_repository_that_git_may_find_is_looked_at() {
    let evil = "[core]\nfsmonitor = x\n";
    assert!(status(&[]));
    assert!(status(&[("/a/b/.git/config", USUAL)]));
    assert!(status(&[("/a/.git/config", USUAL), ("/a/.git/hooks/pre-commit.sample", "")]));
    for files in [
        &[("/a/b/.git/config", evil)][..],
        &[("/a/.git/config", evil)],
        &[("/.git/config", evil)],
        // git may not accept the first one as a repository.
        &[("/a/b/.git/config", USUAL), ("/a/.git/config", evil)],
        &[("/a/b/.git/config", USUAL), ("/a/b/.git/config.worktree", evil)],
        &[("/a/b/.git/config", USUAL), ("/a/b/.git/hooks/post-index-change", "")],
        &[("/a/b/.git/config", "[core]\nhooksPath = h"), ("/a/b/h/post-index-change", "")],
        &[("/a/b/.git/config", "[core]\nhooksPath = /h"), ("/h/post-index-change", "")],
        &[("/a/b/.git/config", "[core]\nhooksPath = ~/h"), ("/home/u/h/post-index-change", "")],
        &[("/a/b/.git/config", "[core]\nhooksPath = ~x/h")],
        // The directory is a repository itself.
        &[("/a/b/HEAD", "x"), ("/a/b/objects/x", ""), ("/a/b/config", evil)],
        &[("/a/b/HEAD", "x"), ("/a/b/commondir", "/c"), ("/c/config", evil)],
        // A linked worktree.
        &[("/a/b/.git", "gitdir: /c/worktrees/b\n"), ("/c/worktrees/b/config.worktree", evil)],
        &[
            ("/a/b/.git", "gitdir: ../x\n"),
            ("/a/b/../x/commondir", "../c"),
            ("/a/b/../x/../c/config", evil),
        ],
        &[("/a/b/.git", "something else")],
        // git cuts off line ends only.
        &[("/a/b/.git", "gitdir: x \n"), ("/a/b/x /config", evil)],
        &[("/a/b/.git", "gitdir: x\u{a0}\n"), ("/a/b/x\u{a0}/config", evil)],
        &[("/a/b/.git", "gitdir:  x\n"), ("/a/b/ x/config", evil)],
        &[("/a/b/HEAD", "x"), ("/a/b/commondir", "c \n"), ("/a/b/c /config", evil)],
        &[("/a/b/HEAD", "x"), ("/a/b/commondir", "\n")],
        &[
            ("/a/b/.git/config", "[core]\nhooksPath = h\u{a0}\n"),
            ("/a/b/h\u{a0}/post-index-change", ""),
        ],
        // A submodule has its own configuration.
        &[("/a/b/.git/config", USUAL), ("/a/b/.gitmodules", "")],
        &[("/a/b/.git/config", USUAL), ("/a/b/.git/modules/x/config", "")],
        &[("/a/b/.git/config", USUAL), ("/a/b/.git/index", "no index")],
    ] {
        assert!(!status(files), "{files:?}");
    }
    let linked = [
        ("/a/b/.git", "gitdir: /c/worktrees/b\n"),
        ("/c/worktrees/b/commondir", "../..\n"),
        ("/c/worktrees/b/../../config", USUAL),
    ];
    assert!(status(&linked));
    let modules = disk(&[("/a/b/.git/config", USUAL), ("/a/b/.gitmodules", "")]);
    assert!(runs_nothing(Path::new("/a/b"), "log", None, &modules));
    let long = format!("{USUAL}#{}\n", "x".repeat(super::CONFIG_LIMIT));
    assert!(!status(&[("/a/b/.git/config", &long)]));
}

/// Runs git in that directory, if this machine has git.
fn git(at: &Path, words: &[&str]) -> Option<()> {
    let mut command = Command::new("git");
    command.current_dir(at).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().ok()?;
    assert!(output.status.success(), "git {words:?}: {output:?}");
    Some(())
}

#[test]
fn a_repository_that_git_made_is_harmless_until_it_has_a_submodule() {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    if git(&work, &["init", "-q"]).is_none() {
        return;
    }
    for name in ["a", "long-name-of-a-file.txt", "d/e"] {
        std::fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
        std::fs::write(work.join(name), name).unwrap();
    }
    git(&work, &["add", "."]).unwrap();
    git(&work, &["commit", "-qm", "x"]).unwrap();
    let is_quiet = |at: &Path| runs_nothing(at, "status", None, &OnDisk);
    // The directories above may contain anything on this machine.
    if runs_nothing(place.path(), "status", None, &OnDisk) {
        assert!(is_quiet(&work));
        git(&work, &["worktree", "add", "-q", "../linked"]).unwrap();
        assert!(is_quiet(&place.path().join("linked")));
    }
    let index = std::fs::read(work.join(".git/index")).unwrap();
    assert_eq!(holds_submodule(&index), Some(false));
    for end in 0..index.len() - 20 {
        assert_ne!(holds_submodule(&index[..end]), Some(true), "{end}");
    }
    let link = "160000,0123456789012345678901234567890123456789,sub";
    git(&work, &["update-index", "--add", "--cacheinfo", link]).unwrap();
    assert_eq!(holds_submodule(&std::fs::read(work.join(".git/index")).unwrap()), Some(true));
    assert!(!is_quiet(&work));
    git(&work, &["rm", "-q", "--cached", "sub"]).unwrap();
    git(&work, &["update-index", "--split-index"]).unwrap();
    assert_eq!(holds_submodule(&std::fs::read(work.join(".git/index")).unwrap()), None);
}
