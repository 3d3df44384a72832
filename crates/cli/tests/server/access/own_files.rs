//! Nobody can reach agentwire's own files through an agent.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::shared::{Home, Server, skipped};

/// The directory of the operator's token.
fn secret(server: &Server) -> PathBuf {
    let file = Path::new(server.ready["tokenFile"].as_str().expect("a file"));
    file.parent().expect("a directory").to_owned()
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Every front that starts sessions, with every name of a directory in which no agent may work.
#[test]
fn no_agent_works_where_agentwire_keeps_its_files() {
    let server = Server::set_up(&[], "[projects]\nhome = \"WORK/..\"\n", |_, _| {});
    let token = server.verb(&["token", "create", "--scope", "drive"]);
    let root = server.work().parent().expect("a directory").to_owned();
    let config = root.join("home/.config/agentwire");
    std::fs::create_dir_all(&config).expect("a directory");
    symlink(server.data(), server.work().join("link")).expect("a link");
    symlink(&root, server.work().join("up")).expect("a link");
    let secret = secret(&server);
    let refused = [
        text(&server.data()),
        text(&server.data().join("owners/..")),
        text(&root),
        "/".to_owned(),
        text(&secret),
        text(secret.parent().expect("a directory")),
        text(&config),
        text(&root.join("home")),
        text(&server.work().join("link")),
        text(&server.work().join("up")),
        text(&server.work().join("up/data/")),
        text(&server.work().join("../data")),
        "/proc".to_owned(),
        "/proc/self/task".to_owned(),
        "/dev/fd".to_owned(),
    ];
    let is_own = |error: &Value| {
        let said = error.to_string();
        said.contains("no agent may work in") && said.contains("choose a project directory")
    };
    for directory in &refused {
        for (token, fields) in [
            (&token, json!({ "workingDirectory": directory })),
            (&server.token, json!({ "workingDirectory": directory })),
            (&server.token, json!({ "additionalDirectories": ["/usr", directory] })),
        ] {
            let body = json!({ "agentType": "demo", "prompt": "/say hi", "config": fields });
            let answer = server.ask_as(token, "POST", "/v1/sessions", Some(&body));
            assert_eq!((answer.status, answer.code()), (403, "forbidden".to_owned()), "{body}");
            assert!(is_own(&answer.json()), "{answer:?}");
        }
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer)];
        let mut rpc = server.socket_at(&server.http, "/rpc", &headers).expect("a socket");
        rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/create", "params": {
            "agent": "demo", "prompt": "/say hi", "cwd": directory,
        } }));
        assert!(is_own(&rpc.frame()["error"]), "{directory}");
        let mut page = server.socket_at(&server.insights, "/", &headers).expect("a socket");
        let payload = json!({ "prompt": "/say hi", "cwd": directory });
        page.say(&json!({ "type": "session.create", "payload": payload }));
        let said = page.until(|frame| frame["type"] == "error");
        assert!(is_own(&said), "{directory}: {said}");
    }
    // The board names directories by projects.
    let board = json!({ "agentId": "demo", "projectId": "home", "prompt": "/say hi" });
    let answer = server.ask_as(&token, "POST", "/api/sessions", Some(&board));
    assert!(answer.status >= 400 && answer.text.contains("no agent may work in"), "{answer:?}");
    assert_eq!(server.get("/v1/sessions")["sessions"], json!([]));
    // Names that lead there once a missing part exists, or when the dots are resolved textually.
    for further in ["missing/../..", "missing/../../data"] {
        let config = json!({ "additionalDirectories": [further] });
        let body = json!({ "agentType": "demo", "prompt": "/say hi", "config": config });
        let answer = server.ask("POST", "/v1/sessions", Some(&body));
        assert!(is_own(&answer.json()), "{further}: {answer:?}");
    }
    // Directories next to them are allowed, even if their names start the same way.
    let beside = root.join("database");
    std::fs::create_dir(&beside).expect("a directory");
    let fields = json!({ "workingDirectory": beside, "additionalDirectories": [server.work()] });
    server
        .post("/v1/sessions", &json!({ "agentType": "demo", "prompt": "/say", "config": fields }));
}

#[test]
fn a_server_in_the_wrong_place_says_so_when_a_session_begins() {
    let server = Server::set_up(&[], "", |command, _| {
        command.current_dir("/");
    });
    let body = json!({ "agentType": "demo", "prompt": "/say hi" });
    let answer = server.ask("POST", "/v1/sessions", Some(&body));
    assert_eq!(answer.code(), "forbidden");
    assert!(answer.text.contains("choose a project directory"), "{answer:?}");
}

/// A client with scope `drive` can make the agent read any file, so files outside the session's directory
/// are asked about.
#[test]
fn an_agent_that_is_driven_tells_no_token() {
    let server = Server::start();
    let token = server.verb(&["token", "create", "--scope", "drive"]);
    let file = server.ready["tokenFile"].as_str().expect("a file").to_owned();
    symlink(&file, server.work().join("notes.txt")).expect("a link");
    for path in [&*file, "notes.txt", "../data/operator.json", "../data/tokens.json"] {
        let body = json!({ "agentType": "demo", "prompt": format!("/read {path}") });
        let answer = server.ask_as(&token, "POST", "/v1/sessions", Some(&body)).json();
        let session = answer["id"].as_str().expect("an id").to_owned();
        let events = server.until(&session, "requestRaised");
        assert!(!json!(events).to_string().contains(&server.token), "{path}");
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    }
}

/// If each agent has a namespace, even a command that somebody allows finds nothing.
#[test]
fn an_agent_does_not_see_agentwires_own_files() {
    let server = Server::set_up(&[], "", |_, place| {
        let config = place.join("home/.config/agentwire");
        std::fs::create_dir_all(&config).expect("a directory");
        std::fs::write(config.join("config.toml"), "# private").expect("a file");
    });
    let status = server.get("/v1/status");
    let is_hidden = status["containment"]["kind"] == "namespace";
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(status["containment"]["caveat"].is_string(), is_hidden && is_root, "{status}");
    if !is_hidden {
        let why = status["containment"]["reason"].as_str().expect("a reason");
        return skipped(why, "AGENTWIRE_REQUIRE_NAMESPACE");
    }
    let file = server.ready["tokenFile"].as_str().expect("a file").to_owned();
    let data = server.data();
    let command = format!(
        "cat {file}; ls {} ; cat ../data/tokens.json ../home/.config/agentwire/config.toml; \
         echo x > ../data/tokens.json; echo done",
        data.display()
    );
    let session = server.session(&format!("/bash {command}"));
    let asked = server.until(&session, "requestRaised");
    let id = asked.last().expect("a request")["requestId"].as_str().expect("an id").to_owned();
    server.post(&format!("/v1/sessions/{session}/requests/{id}"), &json!({ "behavior": "allow" }));
    let events = json!(server.until(&session, "turnCompleted")).to_string();
    assert!(events.contains("done"), "{events}");
    for secret in [server.token.as_str(), "agentwire.db", "# private"] {
        assert!(!events.contains(secret), "{secret}: {events}");
    }
    assert_eq!(server.verb(&["token", "show"]), server.token);
    // The demo agent's own conversation is stored.
    assert!(data.join("demo").read_dir().expect("conversations").next().is_some());
}

#[test]
fn the_token_stays_over_a_restart_and_is_made_again_when_it_is_lost() {
    let server = Server::start();
    let (token, secret) = (server.token.clone(), secret(&server));
    assert_eq!(server.verb(&["token", "show"]), token);
    let server = server.again();
    assert_eq!(server.token, token);
    std::fs::remove_dir_all(secret).expect("it is removed");
    // The running server accepts the new token, and commands find it.
    let newer = server.verb(&["token", "show"]);
    assert_ne!(newer, token);
    assert_eq!(server.ask_as(&token, "GET", "/v1/sessions", None).status, 401);
    assert_eq!(server.ask_as(&newer, "GET", "/v1/sessions", None).status, 200);
    server.verb(&["ls", "--json"]);
    assert_eq!(server.again().token, newer);
}

#[test]
fn a_place_that_is_not_safe_is_refused_with_the_command_that_helps() {
    let home = Home::new();
    let data = home.data();
    std::fs::create_dir(&data).expect("a directory");
    let run = |args: &[&str]| Server::command(&home, &[]).args(args).output().expect("it runs");
    let refused = |args: &[&str], command: &str| {
        let output = run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(command), "{args:?}: {said}");
    };
    let change = |mode| {
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).expect("it changes");
    };
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        change(mode);
        for args in [
            &["serve", "--http", "127.0.0.1:0"][..],
            &["token", "show"],
            &["run", "-a", "demo", "/say hi"],
            &["ls"],
            &["attach", "7d2f9c1e-8a34-4b56-9c78-0d1e2f3a4b5c"],
        ] {
            refused(args, &format!("chmod 700 '{}'", data.display()));
        }
    }
    let said = run(&["doctor", "--json"]).stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("can write to"), "{said}");
    change(0o755);
    assert!(run(&["token", "show"]).status.success());
    let told = std::fs::read_to_string(data.join("operator.json")).expect("a file");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let file = told["file"].as_str().expect("a file").to_owned();
    for wrong in ["", "abc", "x\u{7}".repeat(40).as_str()] {
        std::fs::write(&file, wrong).expect("it is written");
        for args in [&["serve", "--http", "127.0.0.1:0"][..], &["token", "show"]] {
            refused(args, &format!("rm '{file}'"));
        }
    }
    // A token file that others can read is refused.
    let secret = Path::new(&file);
    std::fs::write(secret, "x".repeat(40)).expect("it is written");
    let parent = secret.parent().expect("a directory");
    for (path, loose, strict) in [(secret, 0o644, 0o600), (parent, 0o755, 0o700)] {
        let mode = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("it changes");
        };
        mode(loose);
        for args in [&["serve", "--http", "127.0.0.1:0"][..], &["token", "show"]] {
            refused(args, &format!("chmod {strict:o} '{}'", path.display()));
        }
        mode(strict);
    }
    std::fs::remove_file(&file).expect("it is removed");
    assert!(run(&["token", "show"]).status.success());
}

/// Only root can give a file to another user.
#[test]
fn what_another_user_owns_is_refused() {
    use std::io::Write as _;
    use std::os::unix::fs::{chown, lchown};
    if !rustix::process::geteuid().is_root() {
        let why = "only root can make a file another user's";
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
        return;
    }
    let home = Home::new();
    let data = home.data();
    std::fs::create_dir(&data).expect("a directory");
    let link = home.path("link");
    symlink(&data, &link).expect("a link");
    let run = |at: &Path, args: &[&str]| {
        let output = Server::command(&home, &[]).env("AGENTWIRE_DATA_DIR", at).args(args).output();
        let output = output.expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(run(&link, &["token", "show"]).0);
    let told = std::fs::read_to_string(data.join("operator.json")).expect("a file");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let file = PathBuf::from(told["file"].as_str().expect("a file"));
    std::fs::write(data.join("tokens.json"), "[]").expect("a file");
    let quoted = |path: &Path| format!("'{}'", path.display());
    let directory = file.parent().expect("a directory").to_owned();
    for (path, command) in [
        (data.clone(), format!("chown 0 {}", quoted(&data))),
        (data.join("tokens.json"), format!("mv {}", quoted(&data.join("tokens.json")))),
        (file, format!("mv {}", quoted(&data.join("operator.json")))),
        (directory, format!("mv {}", quoted(&data.join("operator.json")))),
    ] {
        chown(&path, Some(65534), None).expect("it changes");
        let verbs = [&["token", "show"][..], &["serve", "--http", "127.0.0.1:0"]];
        for args in verbs {
            let (is_fine, said) = run(&data, args);
            assert!(!is_fine && said.contains(&command), "{path:?} {args:?}: {said}");
            assert!(!said.contains("rm '"), "{said}");
        }
        chown(&path, Some(0), None).expect("it changes");
        assert!(run(&data, &["token", "show"]).0);
    }
    lchown(&link, Some(65534), None).expect("it changes");
    let (is_fine, said) = run(&link, &["token", "show"]);
    assert!(!is_fine && said.contains("the link"), "{said}");
    // A variable may point to a directory of the user's own, so the advice never is to remove files there.
    std::fs::write(data.join("token"), "my other token").expect("a file");
    let (is_fine, said) = run(&data, &["token", "show"]);
    assert!(!is_fine && said.contains("mv '") && !said.contains("rm '"), "{said}");
}

/// Files are hidden by path: if an agent renames a parent directory, they stay hidden from the next agent.
#[test]
fn no_agent_starts_while_a_hidden_directory_is_elsewhere() {
    let server = Server::set_up(&[], "", |command, place| {
        let run = place.join("above/run");
        std::fs::create_dir_all(&run).expect("a directory");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&run, mode).expect("it is private");
        command.env("XDG_RUNTIME_DIR", &run);
    });
    let root = server.work().parent().expect("a directory").to_owned();
    assert!(secret(&server).starts_with(root.join("above")));
    if server.get("/v1/status")["containment"]["kind"] != "namespace" {
        return;
    }
    let first = server.session("/say hi");
    server.until(&first, "turnCompleted");
    std::fs::rename(root.join("above"), root.join("moved")).expect("it moves");
    let body = json!({ "agentType": "demo", "prompt": "/say hi" });
    let refused = server.ask("POST", "/v1/sessions", Some(&body));
    assert_eq!(refused.code(), "forbidden");
    assert!(refused.text.contains("operator's token"), "{refused:?}");
    assert!(refused.text.contains(&text(&root.join("above"))), "{refused:?}");
    std::fs::rename(root.join("moved"), root.join("above")).expect("it moves back");
    let next = server.session("/say hi");
    server.until(&next, "turnCompleted");
}
