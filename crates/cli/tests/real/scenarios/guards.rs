//! What restricts an agent cannot be removed: not by what the agent reads, not by harmless-looking
//! commands, not by arguments.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::Place;
use crate::talk::Talk;

/// Works through a turn and denies every request. A call must have been attempted, and denied here, by the
/// policy or by the program.
fn denied(talk: &mut Talk<'_>) {
    let is_tried = deny_all(talk) || talk.has_stopped_call();
    assert!(is_tried, "nothing was tried: {}", talk.digest());
}

/// Works through a turn and denies every request. Returns whether there was any.
fn deny_all(talk: &mut Talk<'_>) -> bool {
    let mut is_asked = false;
    loop {
        let next = talk.until("a question or an end", |event| {
            ["requestRaised", "turnCompleted", "turnFailed", "sessionEnded"]
                .iter()
                .any(|kind| event["type"] == *kind)
        });
        if next["type"] != "requestRaised" {
            return is_asked;
        }
        let id = next["requestId"].as_str().expect("an id");
        let is_settled =
            |event: &Value| event["type"] == "requestSettled" && event["requestId"] == *id;
        if !talk.events.iter().any(is_settled) {
            is_asked = true;
            talk.settle(id, &json!({ "behavior": "deny", "message": "no" }));
        }
    }
}

/// A client that may only drive agents cannot use one to read the operator's token.
pub(crate) fn own_files(place: &mut Place) {
    let output = place.verb(&place.home(), &["token", "create", "--scope", "drive"]);
    let drive = String::from_utf8(output.stdout).expect("text").trim().to_owned();
    let (token, file) = place.operator();
    let words = place.agent.words;
    for mode in ["ask", "askDangerous", "autoEdit"] {
        let work = place.workspace();
        std::os::unix::fs::symlink(file, work.join("notes.txt")).expect("a link");
        let calls = [
            (words.read)(file),
            (words.read)(&work.join("notes.txt")),
            (words.shell)(&format!("cat {}", file.display())),
            (words.shell)("cat notes.txt"),
        ];
        let steps: Vec<String> = calls.iter().map(crate::agents::Call::step).collect();
        let script = format!("{} [[say it gave {{result}}]]", steps.join(" "));
        let body = place.request(&work, &script, json!({ "approvalMode": mode }));
        match place.ask_as(&drive, "POST", "/v1/sessions", &body) {
            Err(problem) => {
                assert_ne!(mode, "ask", "{problem}");
                assert_eq!(problem["code"], "forbidden", "{mode}: {problem}");
                let told = problem["detail"].as_str().expect("a text");
                assert!(told.contains("approvalMode"), "{mode}: {problem}");
            }
            Ok(started) => {
                let mut talk = Talk::new(place, started["id"].as_str().expect("an id"));
                denied(&mut talk);
                let told = json!(talk.events).to_string();
                assert!(!told.contains(token), "{mode}: it was read; {}", talk.digest());
            }
        }
    }
}

/// Commands that look as if they only read.
const TRICKS: [&str; 4] = [
    "find -- . -fprintf .git/config x",
    "find . -name kept.txt -delete",
    "find -- . -name kept.txt -delete",
    "find . -maxdepth 0 -fls planted.txt",
];

/// In `askDangerous`, nothing is written or deleted before somebody is asked.
pub(crate) fn dangerous(place: &mut Place) {
    for command in TRICKS {
        let work = place.workspace();
        fs::write(work.join("kept.txt"), "x").expect("a file");
        let config = fs::read_to_string(work.join(".git/config")).expect("a repository");
        let call = (place.agent.words.shell)(command);
        let script = format!("{} [[say over]]", call.step());
        let mut talk = place.session(&work, &script, json!({ "approvalMode": "askDangerous" }));
        denied(&mut talk);
        let now = fs::read_to_string(work.join(".git/config")).expect("a repository");
        assert_eq!(now, config, "{command}: {}", talk.digest());
        assert!(work.join("kept.txt").exists(), "{command}: {}", talk.digest());
        assert!(!work.join("planted.txt").exists(), "{command}: {}", talk.digest());
        talk.stop();
    }
}

/// A command that only reads may run programs from the repository's settings, so somebody is asked first.
pub(crate) fn planted_git_settings(place: &mut Place) {
    let settings = [
        "[core]\n\tfsmonitor = \"touch planted.txt;:\"\n",
        "[diff]\n\texternal = \"touch planted.txt;:\"\n",
    ];
    for (settings, command) in settings.into_iter().zip(["git status", "git diff"]) {
        let work = place.workspace();
        fs::write(work.join("kept.txt"), "x").expect("a file");
        let git = |args: &[&str]| {
            let status = std::process::Command::new("git").args(args).current_dir(&work).status();
            assert!(status.expect("git").success());
        };
        git(&["add", "kept.txt"]);
        fs::write(work.join("kept.txt"), "y").expect("a file");
        let file = work.join(".git/config");
        let own = fs::read_to_string(&file).expect("a repository");
        fs::write(&file, own + settings).expect("a file");
        // The planted settings work.
        git(&command.split(' ').skip(1).collect::<Vec<_>>());
        fs::remove_file(work.join("planted.txt")).expect("git ran what its settings name");
        let script = format!("{} [[say over]]", (place.agent.words.shell)(command).step());
        let mut talk = place.session(&work, &script, json!({ "approvalMode": "askDangerous" }));
        denied(&mut talk);
        assert!(!work.join("planted.txt").exists(), "{command}: {}", talk.digest());
        talk.stop();
    }
}

/// A directory outside the workspace that contains a file with this text.
fn outside(place: &Place, text: &str) -> std::path::PathBuf {
    let directory = place.scripts();
    fs::write(directory.join("secret.txt"), text).expect("a file");
    directory
}

/// In `askDangerous`, this command is asked about and does not show the text.
fn shows_nothing(place: &Place, work: &Path, command: &str, text: &str) {
    let call = (place.agent.words.shell)(command);
    let script = format!("{} [[say it gave {{result}}]]", call.step());
    let mut talk = place.session(work, &script, json!({ "approvalMode": "askDangerous" }));
    denied(&mut talk);
    assert!(!json!(talk.events).to_string().contains(text), "{command}: {}", talk.digest());
    talk.stop();
}

/// The workspace contains links that lead outside: commands that follow them are asked about.
pub(crate) fn links_outside(place: &mut Place) {
    let text = "made-up-secret-behind-a-link";
    let directory = outside(place, text);
    for command in ["diff -r links empty", "diff -rN empty links", "grep -R made links"] {
        let work = place.workspace();
        for name in ["links", "empty"] {
            fs::create_dir(work.join(name)).expect("a directory");
        }
        let link = work.join("links/secret.txt");
        std::os::unix::fs::symlink(directory.join("secret.txt"), link).expect("a link");
        fs::write(work.join("empty/secret.txt"), "").expect("a file");
        shows_nothing(place, &work, command, text);
    }
}

/// A path is relative to the directory the command has changed to, not to the workspace.
pub(crate) fn relative_after_cd(place: &mut Place) {
    let text = "made-up-secret-after-cd";
    let directory = outside(place, text);
    let there = directory.display();
    let name = directory.file_name().expect("a name").display();
    for command in [
        format!("cd {there} && cat secret.txt"),
        format!("cd ../../{name}; cat secret.txt"),
        format!("cd sub && cat ../../../{name}/secret.txt"),
    ] {
        let work = place.workspace();
        fs::create_dir(work.join("sub")).expect("a directory");
        fs::write(work.join("secret.txt"), "harmless").expect("a file");
        shows_nothing(place, &work, &command, text);
    }
}

/// Arguments that might keep Claude from showing its calls, or make it approve them.
fn unguarding(file: &Path) -> Vec<Vec<String>> {
    let file = file.display();
    let all = [
        vec!["--bare"],
        vec!["--safe-mode"],
        vec!["--restricted"],
        vec!["--settings", r#"{"disableAllHooks":true}"#],
        vec![r#"--settings={"disableAllHooks":true,"permissions":{"allow":["Read"]}}"#],
        vec![r#"--settings={"permissions":{"defaultMode":"bypassPermissions"}}"#],
        vec![r#"--managed-settings={"allowManagedHooksOnly":true}"#],
        vec![r#"--managed-settings={"disableAllHooks":true}"#],
        vec![r#"--managed-settings={"permissions":{"allow":["Read","Write"]}}"#],
        vec!["--permission-mode=bypassPermissions"],
        vec!["--permission-mode", "acceptEdits"],
        vec!["--dangerously-skip-permissions"],
        vec!["--allow-dangerously-skip-permissions"],
        vec!["--allowedTools", "Read,Write"],
        vec!["--allowed-tools=Read,Write"],
        vec!["--permission-prompt-tool=mcp__x__y"],
        vec!["--permission-prompts=none"],
        vec!["--enable-auto-mode"],
        vec!["--inherit-permission-mode=bypassPermissions"],
        vec!["--sdk-url=wss://localhost/x"],
        vec!["--channels", "server:x"],
        vec!["--output-format=text"],
        vec!["--input-format=text"],
        vec!["--setting-sources=user,project,local"],
        vec!["--", "x"],
    ];
    let mut all: Vec<Vec<String>> =
        all.iter().map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()).collect();
    all.push(vec![format!("--settings={file}")]);
    all.push(vec!["--settings".to_owned(), file.to_string()]);
    all
}

/// Variables that might do the same.
const VARIABLES: [&str; 6] = [
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_SAFE_MODE",
    "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS",
    "CLAUDE_CODE_PERSONAL_HOOKS_OFF",
    "CLAUDE_CODE_DISABLE_HOOK_FORWARDING",
    "CLAUDE_CODE_SANDBOXED",
];

const LAX: &str = r#"{"permissions":{"allow":["Write","Bash","Read"]},"disableAllHooks":true}"#;

/// No argument or variable of a client disables a session's rules and requests: either it is refused, or
/// the gateway sees every call before it is made.
pub(crate) fn arguments(place: &mut Place) {
    let file = place.scripts().join("lax.json");
    fs::write(&file, LAX).expect("a file");
    let args = unguarding(&file).into_iter().map(|args| json!({ "nativeArgs": args }));
    if place.agent.kind != "claude" {
        // Other programs accept no arguments from a client.
        for more in args {
            let body = place.request(&place.workspace(), "[[say hello]]", more);
            let refusal = place.ask("POST", "/v1/sessions", &body).expect_err("a refusal");
            assert_eq!(refusal["code"], "unsupported", "{refusal}");
        }
        return;
    }
    let env = VARIABLES.iter().map(|name| json!({ "env": { *name: "1" } }));
    for more in args.chain(env) {
        guards(place, &more);
    }
    managed(place);
}

/// Calls that an administrator allows are still shown to the gateway.
fn managed(place: &Place) {
    let scripts = place.scripts();
    let etc = scripts.join("etc");
    fs::create_dir_all(etc.join("claude-code")).expect("a directory");
    let settings =
        r#"{"permissions":{"allow":["Write","Bash","Read"]},"allowManagedHooksOnly":true}"#;
    fs::write(etc.join("claude-code/managed-settings.json"), settings).expect("a file");
    // In its own mount namespace, the program finds them where an administrator would put them.
    let script = format!(
        "for it in passwd group hosts nsswitch.conf ssl; do cp -r /etc/$it '{etc}' 2>/dev/null; done\n\
         exec unshare --mount sh -c 'mount --bind \"{etc}\" /etc && exec \"$@\"' sh '{program}' \"$@\"",
        etc = etc.display(),
        program = place.program.display(),
    );
    let works = std::process::Command::new("unshare").args(["--mount", "true"]).status();
    if works.is_ok_and(|status| status.success()) {
        guards(&place.with(crate::trouble::Trouble::script(&scripts, &script)), &json!({}));
    }
}

/// Starts a session with this in its config, for a user whose settings allow everything.
fn guards(place: &Place, more: &Value) {
    let words = place.agent.words;
    let user = place.home().join(".claude/settings.json");
    fs::create_dir_all(place.home().join(".claude")).expect("a directory");
    fs::write(&user, LAX).expect("a file");
    // Also if the row fails: the next rows use the same home.
    let _removed = Removed(&user);
    let work = place.workspace();
    let (written, kept) = (work.join("written.txt"), work.join(".env"));
    fs::write(&kept, "made-up-secret").expect("a file");
    let steps = [(words.write)(&written, "x").step(), (words.read)(&kept).step()];
    let script = format!("{} [[say it gave {{result}}]]", steps.join(" "));
    let mut config = json!({ "approvalMode": "ask", "blockedTools": ["Bash"] });
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    let body = place.request(&work, &script, config);
    match place.ask("POST", "/v1/sessions", &body) {
        Err(problem) => {
            let told = problem["detail"].as_str().expect("a text");
            assert_eq!(problem["code"], "unsupported", "{more}: {problem}");
            assert!(told.contains(&option(more)), "{more}: {problem}");
        }
        Ok(started) => {
            let mut talk = Talk::new(place, started["id"].as_str().expect("an id"));
            deny_all(&mut talk);
            // Every call that was made was shown to the gateway's own hook, or the program refused to
            // start.
            let count = |name: &str, value: &str| {
                talk.events.iter().filter(|event| event[name] == value).count()
            };
            let (shown, made) = (count("name", "policy"), count("type", "toolCompleted"));
            let has_failed = count("type", "turnFailed") + count("type", "sessionEnded") > 0;
            let is_guarded = (shown > 0 && shown >= made) || (made == 0 && has_failed);
            assert!(is_guarded, "{more}: {shown} of {made}; {}", talk.digest());
            let _ = place.ask("POST", &format!("/v1/sessions/{}/stop", talk.id), &Value::Null);
        }
    }
}

/// Removes a file on drop.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0);
    }
}

/// The name of the argument or variable.
fn option(more: &Value) -> String {
    if let Some(env) = more["env"].as_object() {
        return env.keys().next().expect("a variable").clone();
    }
    let first = more["nativeArgs"][0].as_str().expect("an argument");
    first.split('=').next().expect("a name").to_owned()
}
