//! What is found in a project, and what is remembered about it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use agentwire_dialects::driver;
use agentwire_dialects::project::ProjectFile;
use agentwire_protocol::{AgentType, SessionConfig};

use super::*;

fn files(agent: AgentType) -> Vec<ProjectFile> {
    driver(agent, None).unwrap().project_files(&SessionConfig::default())
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A project directory, by its real path.
fn project() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap().join("project");
    fs::create_dir_all(root.join(".git")).unwrap();
    (directory, root)
}

fn look(agent: AgentType, root: &Path) -> Survey {
    survey(&files(agent), root, &[], None)
}

fn paths(found: &Survey) -> Vec<&str> {
    found.files.iter().map(|file| file.path.as_str()).collect()
}

const HOOK: &str =
    r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"sh tools/go.sh"}]}]}}"#;

#[test]
fn each_agent_has_its_own_files() {
    for (agent, path, text, runs) in [
        (AgentType::Claude, ".claude/settings.json", HOOK, "sh tools/go.sh"),
        (AgentType::Claude, ".claude/settings.local.json", r#"{"apiKeyHelper":"k"}"#, "k"),
        (AgentType::Claude, ".mcp.json", r#"{"mcpServers":{"a":{"command":"c"}}}"#, "a: c"),
        (AgentType::Claude, ".claude/agents/x.md", "---\nhooks:\n  a: b\n---\n", "hooks:"),
        (AgentType::Claude, ".claude/skills/s/SKILL.md", "!`date`", "date"),
        (AgentType::Codex, ".codex/config.toml", "notify = ['n']", "n"),
        (AgentType::Codex, ".codex/rules/default.rules", "allow", ""),
        (
            AgentType::Gemini,
            ".gemini/settings.json",
            r#"{"mcpServers":{"a":{"command":"c"}}}"#,
            "c",
        ),
        (AgentType::Gemini, ".env", "A=1", "sets A"),
        (AgentType::Gemini, ".gemini/commands/a.toml", "prompt='!{date}'", "date"),
        (AgentType::Acp, ".codex/config.toml", "notify = ['n']", "n"),
        (AgentType::Acp, ".mcp.json", "{}", ""),
        (AgentType::Gemini, ".gemini/commands/b.toml", "prompt=\"!\\u007bdate}\"", "date"),
        (AgentType::Claude, ".claude/agents/y.md", "---\n\"hooks\": x\n---\n", "hooks"),
        (AgentType::Claude, ".claude/skills/s/skill.MD", "!`date`", "date"),
        (AgentType::Claude, "pkg/.claude/skills/s/SKILL.md", "---\nhooks: x\n---\n", "hooks"),
        (AgentType::Claude, "node_modules/a/b/.claude/skills/s/SKILL.md", "!`date`", "date"),
        (AgentType::Claude, "pkg/.claude/agents/x.md", "---\nhooks: x\n---\n", "hooks"),
        (AgentType::Claude, "pkg/.claude/commands/x.md", "!`date`", "date"),
        (AgentType::Claude, "a/.claude/skills/s/.mcp.json", r#"{"a":1}"#, "a"),
        (AgentType::Acp, "pkg/.claude/skills/s/SKILL.md", "!`date`", "date"),
        (AgentType::Acp, "opencode.json", r#"{"mcp":{"a":{"command":["c"]}}}"#, "c"),
        (AgentType::Acp, ".opencode/plugin/a.ts", "export", ""),
        (AgentType::Acp, ".opencode/command/a.md", "!`date`", "date"),
        (AgentType::Acp, ".opencode/agent/a.md", "---\npermission: allow\n---\n", "permission"),
        (AgentType::Acp, ".qwen/settings.json", r#"{"a":1}"#, "a"),
        (AgentType::Acp, ".qwen/commands/a.toml", "prompt='!{date}'", "date"),
        (AgentType::Acp, ".iflow/settings.json", r#"{"a":1}"#, "a"),
        (AgentType::Acp, ".cursor/hooks.json", r#"{"a":1}"#, "a"),
        (AgentType::Acp, ".kiro/settings/mcp.json", "{}", ""),
        (AgentType::Acp, ".github/hooks/a.json", r#"{"a":1}"#, "a"),
        (AgentType::Acp, ".goose/config.yaml", "a: 1", ""),
    ] {
        let (_directory, root) = project();
        assert!(look(agent, &root).is_empty(), "{agent}");
        put(&root, path, text);
        let found = look(agent, &root);
        assert_eq!(paths(&found), [path], "{agent}");
        let said = found.files[0].runs.join("\n");
        assert!(said.contains(runs), "{agent} {path}: {said}");
        assert!(look(AgentType::Demo, &root).is_empty());
    }
}

#[test]
fn innocent_texts_do_not_count() {
    let (_directory, root) = project();
    put(&root, "CLAUDE.md", "Be kind.");
    put(&root, "AGENTS.md", "Be kind.");
    put(&root, ".claude/commands/a.md", "---\ndescription: a\n---\nDo it.");
    put(&root, ".claude/hooks/go.sh", "true");
    put(&root, ".gemini/commands/a.toml", "prompt = 'x'");
    put(&root, ".claude/agents/a.md", "---\nname: a\ndescription: b\nmodel: opus\n---\nDo it.");
    put(&root, "pkg/CLAUDE.md", "Be kind.");
    put(&root, "pkg/.claude/skills/a/SKILL.md", "---\nname: a\n---\nDo it.");
    put(&root, "pkg/.claude/settings.json", HOOK);
    put(&root, "node_modules/a/package.json", "{}");
    put(&root, ".opencode/command/a.md", "Do it.");
    put(&root, ".qwen/commands/a.toml", "prompt = 'x'");
    put(&root, ".cursor/rules/a.mdc", "Be kind.");
    put(&root, ".github/workflows/ci.yml", "on: push");
    symlink("nowhere", root.join("link")).unwrap();
    symlink(".", root.join("pkg/self")).unwrap();
    symlink("..", root.join("pkg/up")).unwrap();
    for agent in AgentType::ALL {
        assert!(look(agent, &root).is_empty(), "{agent}");
    }
}

#[test]
fn scripts_that_are_named_count_with_those_that_name_them() {
    let (_directory, root) = project();
    put(&root, "tools/go.sh", "true");
    put(&root, ".claude/hooks/other.sh", "true");
    put(&root, ".claude/settings.json", HOOK);
    let before = look(AgentType::Claude, &root);
    assert_eq!(paths(&before), [".claude/hooks/other.sh", ".claude/settings.json", "tools/go.sh"]);
    let state = before.snapshot().unwrap();
    assert!(look(AgentType::Claude, &root).is_within(&state));
    put(&root, "tools/go.sh", "rm -r .");
    assert!(!look(AgentType::Claude, &root).is_within(&state));
}

#[test]
fn a_change_or_a_new_file_is_another_state_and_a_removal_is_not() {
    let (_directory, root) = project();
    put(&root, ".claude/settings.json", HOOK);
    put(&root, ".mcp.json", "{}");
    let state = look(AgentType::Claude, &root).snapshot().unwrap();
    put(&root, ".claude/settings.local.json", "{}");
    assert!(!look(AgentType::Claude, &root).is_within(&state), "a file appeared");
    fs::remove_file(root.join(".claude/settings.local.json")).unwrap();
    assert!(look(AgentType::Claude, &root).is_within(&state));
    fs::remove_file(root.join(".mcp.json")).unwrap();
    assert!(look(AgentType::Claude, &root).is_within(&state), "a file is gone");
    put(&root, ".mcp.json", "{ }");
    assert!(!look(AgentType::Claude, &root).is_within(&state), "a file changed");
}

#[test]
fn directories_above_count_as_the_agent_reads_them_and_home_does_not() {
    let (_directory, root) = project();
    let (deep, above) = (root.join("a/b"), root.parent().unwrap());
    fs::create_dir_all(&deep).unwrap();
    put(&root, ".claude/settings.json", HOOK);
    put(above, ".claude/settings.json", HOOK);
    put(above, ".mcp.json", "{}");
    let found = look(AgentType::Claude, &deep);
    let settings = root.join(".claude/settings.json").display().to_string();
    let servers = above.join(".mcp.json").display().to_string();
    assert_eq!(paths(&found), [servers.as_str(), settings.as_str()]);
    let found = survey(&files(AgentType::Claude), &deep, &[], Some(above));
    assert_eq!(paths(&found), [settings.as_str()]);
    let found = survey(&files(AgentType::Claude), &deep, &[], Some(&root));
    assert_eq!(paths(&found), [servers.as_str()]);
    // Further directories count as well.
    let found = survey(&files(AgentType::Claude), above, std::slice::from_ref(&root), None);
    assert!(paths(&found).contains(&"project/.claude/settings.json"), "{:?}", paths(&found));
}

const SKILL: &str = ".claude/skills/s/SKILL.md";

#[test]
fn the_way_up_ends_at_the_repository_or_at_home() {
    use agentwire_dialects::project::ParentSearch;
    let (here, repository, home) = (Path::new("/h/r/d"), Path::new("/h/r"), Path::new("/h"));
    for (above, repository, home, top) in [
        (ParentSearch::Nowhere, Some(repository), Some(home), Some(here)),
        (ParentSearch::Repository, Some(repository), Some(home), Some(repository)),
        (ParentSearch::Repository, Some(repository), None, Some(repository)),
        (ParentSearch::Repository, None, Some(home), Some(home)),
        (ParentSearch::Repository, None, None, None),
        (ParentSearch::Everywhere, Some(repository), Some(home), None),
    ] {
        assert_eq!(survey::top(above, here, repository, home), top, "{above:?}");
    }
}

#[test]
fn without_a_repository_all_directories_above_count() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let deep = top.join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    for path in [SKILL, ".claude/agents/a.md", ".claude/commands/a.md", ".claude/settings.json"] {
        put(&top, path, "!`date`");
        let expected = top.join(path).display().to_string();
        assert_eq!(paths(&look(AgentType::Claude, &deep)), [expected.as_str()]);
        let found = survey(&files(AgentType::Claude), &deep, &[], Some(&top));
        assert!(found.is_empty(), "{path}: it is the user's own: {:?}", paths(&found));
        fs::remove_file(top.join(path)).unwrap();
    }
}

#[test]
fn only_a_directory_or_a_file_is_a_repository() {
    for (name, is_root) in
        [("directory", true), ("file", true), ("dangling", false), ("link", false), ("pipe", false)]
    {
        let (_directory, root) = project();
        let deep = root.join("sub");
        fs::create_dir(&deep).unwrap();
        put(&root, SKILL, "!`date`");
        let git = deep.join(".git");
        match name {
            "directory" => fs::create_dir(&git).unwrap(),
            "file" => fs::write(&git, "gitdir: x").unwrap(),
            "dangling" => symlink("nowhere", &git).unwrap(),
            "link" => symlink("../.git", &git).unwrap(),
            _ => {
                let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
                rustix::fs::mknodat(rustix::fs::CWD, &git, kind, mode, 0).unwrap();
            }
        }
        assert_eq!(look(AgentType::Claude, &deep).is_empty(), is_root, "{name}");
    }
}

#[test]
fn links_to_directories_are_followed_below() {
    let (directory, root) = project();
    let outside = directory.path().canonicalize().unwrap().join("outside");
    put(&outside, &format!("deep/{SKILL}"), "!`date`");
    symlink(&outside, root.join("pkg")).unwrap();
    symlink(&root, root.join("again")).unwrap();
    let found = look(AgentType::Claude, &root);
    assert_eq!(paths(&found), [format!("pkg/deep/{SKILL}")]);
    assert!(found.snapshot().is_some());
    fs::remove_file(root.join("pkg")).unwrap();
    fs::create_dir(root.join("pkg")).unwrap();
    symlink(outside.join("deep/.claude"), root.join("pkg/.claude")).unwrap();
    assert_eq!(paths(&look(AgentType::Claude, &root)), [format!("pkg/{SKILL}")]);
}

#[test]
fn directories_that_are_not_looked_at_are_a_reason_to_ask() {
    let (_directory, root) = project();
    for at in 0..20 {
        put(&root, &format!("node_modules/{at}/package.json"), "{}");
    }
    let within = |agent, entries, time| {
        let limits = nested::Limits { entries, time };
        survey::survey_within(&files(agent), &root, &[], None, limits)
    };
    let long = Duration::from_secs(600);
    assert!(within(AgentType::Claude, 1000, long).is_empty());
    for found in [within(AgentType::Claude, 10, long), within(AgentType::Acp, 1000, Duration::ZERO)]
    {
        assert!(!found.is_empty());
        assert!(found.left_out.is_some_and(|why| why.starts_with("the search is incomplete")));
        assert!(found.snapshot().is_none(), "nothing can be remembered of it");
    }
    // These agents read nothing below.
    for agent in [AgentType::Codex, AgentType::Gemini] {
        assert!(within(agent, 10, Duration::ZERO).is_empty());
    }
}

#[test]
fn what_cannot_be_read_is_told_and_never_waited_for() {
    let (_directory, root) = project();
    let pipe = root.join(".mcp.json");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let found = look(AgentType::Claude, &root);
    assert_eq!(found.files[0].note.as_deref(), Some("cannot be read: it is not a regular file"));
    assert!(found.snapshot().is_none(), "nothing can be remembered of it");
    fs::remove_file(&pipe).unwrap();
    symlink("/dev/zero", &pipe).unwrap();
    assert!(look(AgentType::Claude, &root).snapshot().is_none());
    fs::remove_file(&pipe).unwrap();
    // A link is followed and reported; one that leads nowhere is not a file.
    symlink("nowhere", &pipe).unwrap();
    assert!(look(AgentType::Claude, &root).is_empty());
    put(&root, "nowhere", "{}");
    let found = look(AgentType::Claude, &root);
    assert!(found.files[0].link.as_deref().is_some_and(|link| link.ends_with("/nowhere")));
    assert!(found.snapshot().is_some());
    // Neither is a directory with that name.
    fs::create_dir(root.join(".env")).unwrap();
    assert!(look(AgentType::Gemini, &root).is_empty());
}

#[test]
fn large_files_have_a_digest_and_huge_ones_have_none() {
    let (_directory, root) = project();
    put(&root, ".mcp.json", &" ".repeat(2 << 20));
    let found = look(AgentType::Claude, &root);
    assert!(found.files[0].note.as_deref().is_some_and(|note| note.contains("2097152 bytes")));
    assert!(found.snapshot().is_some());
    let huge = fs::File::create(root.join(".mcp.json")).unwrap();
    huge.set_len(65 << 20).unwrap();
    let found = look(AgentType::Claude, &root);
    assert_eq!(found.files[0].note.as_deref(), Some("cannot be read: it is too large"));
    assert!(found.snapshot().is_none());
}

#[test]
fn too_many_files_are_not_passed_over_in_silence() {
    let (_directory, root) = project();
    for at in 0..600 {
        put(&root, &format!(".codex/rules/{at}.rules"), "allow");
    }
    let found = look(AgentType::Codex, &root);
    assert_eq!(found.left_out, Some("there are too many files"));
    assert!(found.snapshot().is_none());
}

#[test]
fn what_is_shown_is_bounded() {
    let (_directory, root) = project();
    let fields: Vec<String> =
        (0..99).map(|at| format!("\"k{at}\":\"{}\"", "x".repeat(1900))).collect();
    for at in 0..5 {
        put(
            &root,
            &format!(".gemini/extensions/{at}/e.json"),
            &format!("{{{}}}", fields.join(",")),
        );
    }
    let found = look(AgentType::Gemini, &root);
    let shown: usize = found.files.iter().flat_map(|file| &file.runs).map(String::len).sum();
    assert!(shown < 300 << 10, "{shown}");
    assert_eq!(found.files[4].runs, ["is not shown because there is too much; read the file"]);
    assert!(found.snapshot().is_some(), "all have a digest");
    let words: Vec<String> = (0..5000).map(|at| format!("w{at}")).collect();
    put(
        &root,
        ".gemini/settings.json",
        &format!("{{\"tools\":{{\"callCommand\":\"{}\"}}}}", words.join(" ")),
    );
    assert_eq!(look(AgentType::Gemini, &root).left_out, Some("there are too many commands"));
}

#[test]
fn what_is_trusted_is_kept_for_an_agent_and_a_directory() {
    let place = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(place.path());
    let state = |digest: &str| Snapshot::from([("a".to_owned(), digest.to_owned())]);
    assert!(!ledger.trusts(AgentType::Claude, "/p", &state("1")));
    ledger.remember(AgentType::Claude, "/p", state("1")).unwrap();
    ledger.remember(AgentType::Claude, "/p", state("2")).unwrap();
    for (agent, directory, digest, expected) in [
        (AgentType::Claude, "/p", "1", true),
        (AgentType::Claude, "/p", "2", true),
        (AgentType::Claude, "/p", "3", false),
        (AgentType::Claude, "/q", "1", false),
        (AgentType::Codex, "/p", "1", false),
    ] {
        let trusts = ledger.trusts(agent, directory, &state(digest));
        assert_eq!(trusts, expected, "{agent} {directory} {digest}");
    }
    assert!(ledger.trusts(AgentType::Claude, "/p", &Snapshot::new()));
    for at in 0..20 {
        ledger.remember(AgentType::Claude, "/p", state(&format!("n{at}"))).unwrap();
    }
    assert!(!ledger.trusts(AgentType::Claude, "/p", &state("1")), "the oldest are forgotten");
    let entries = ledger.entries();
    assert_eq!((entries.len(), entries[0].states.len()), (1, 16));
    let file = fs::read_dir(place.path().join("trust")).unwrap().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // A damaged entry is no longer trusted.
    fs::write(file.path(), "{").unwrap();
    assert!(!ledger.trusts(AgentType::Claude, "/p", &state("n19")));
    assert_eq!(ledger.revoke("/p").unwrap(), 1);
    assert_eq!(ledger.revoke("/p").unwrap(), 0);
}

#[test]
fn what_a_start_says_of_trust() {
    let with = |trust, sources: Option<&[&str]>| SessionConfig {
        trust,
        setting_sources: sources.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        ..SessionConfig::default()
    };
    for (trust, sources, policy, wish) in [
        (None, None, TrustPolicy::Ask, Wish::Ask),
        (None, Some(&["user"][..]), TrustPolicy::Ask, Wish::Ask),
        (None, Some(&["user", "project"][..]), TrustPolicy::Ask, Wish::TrustOnce),
        (None, Some(&["local"][..]), TrustPolicy::Ask, Wish::TrustOnce),
        (None, Some(&["local"][..]), TrustPolicy::Never, Wish::Distrust),
        (None, None, TrustPolicy::Always, Wish::TrustOnce),
        (Some(false), Some(&["project"][..]), TrustPolicy::Always, Wish::Distrust),
        (Some(true), None, TrustPolicy::Never, Wish::Trust),
    ] {
        assert_eq!(
            Wish::of(&with(trust, sources), policy),
            wish,
            "{trust:?} {sources:?} {policy:?}"
        );
    }
}
