//! Which server a command asks, and the error if there is none, if it is the wrong one, or if it does not
//! know the session.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use agentwire_protocol::{AgentType, NewSession, SessionId};
use agentwire_sessions::{Hub, Settings};

use crate::client::harness::{EVERYWHERE, From, Machines};
use crate::client::restart::Watcher;
use crate::shared::{error, text};

const COMMANDS: [&[&str]; 4] =
    [&["send", "ID", "hello"], &["interrupt", "ID"], &["stop", "ID"], &["permit", "allow", "RID"]];

fn with<'a>(args: &[&'a str], id: &'a str, request: &'a str) -> Vec<&'a str> {
    let word = |word: &&'a str| match *word {
        "ID" => id,
        "RID" => request,
        other => other,
    };
    args.iter().map(word).collect()
}

/// `agentwire run` in its own process, which is killed on drop.
struct Run(Child);

impl Run {
    /// Starts it, and returns the id of its session once that exists.
    fn start(machines: &Machines, prompt: &str) -> (Self, String) {
        let run = Self(
            machines.verb(From::Here, &["run", "-a", "demo", prompt]).spawn().expect("it starts"),
        );
        loop {
            let listed = machines.json(From::Here, &["ls", "--json"]);
            if let Some(id) = listed["sessions"][0]["id"].as_str() {
                return (run, id.to_owned());
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_session_of_another_process_is_commanded_there() {
    let mut machines = Machines::without_server();
    let (run, id) = Run::start(&machines, "/hang");
    for has_server in [false, true] {
        if has_server {
            machines.serve("127.0.0.1:0");
        }
        for args in &COMMANDS[..3] {
            let told = machines.refused(From::Here, &with(args, &id[..8], ""), 1);
            let expected =
                format!("session {} runs in process {} (agentwire run)", &id[..8], run.0.id());
            assert!(told.contains(&expected), "{told}");
        }
    }
}

/// A running server reports the end of a session whose process was killed.
#[test]
fn a_session_whose_process_was_killed_is_over_for_the_server_too() {
    let machines = Machines::new();
    let (mut run, id) = Run::start(&machines, "/hang");
    let client = machines.client();
    let session = machines.runtime.block_on(client.attach(id.as_str())).expect("a session");
    machines.until(&session, "turnStarted", 0);
    let mut watcher =
        Watcher::start(&machines, From::There, &["logs", "-f", "--format", "jsonl", &id]);
    watcher.until("turnStarted");
    run.0.kill().expect("it is killed");
    run.0.wait().expect("it ends");
    let (printed, code) = watcher.end();
    assert!(printed.contains("sessionEnded"), "{printed}");
    assert_eq!((printed, code), (machines.told(From::There, &["export", &id]), Some(0)));
    assert_eq!(machines.json(From::There, &["show", &id, "--json"])["state"], "ended");
    machines.told(From::There, &["stop", &id]);
}

/// New directories are accessible only to their user.
#[test]
fn a_data_directory_is_made_for_its_user_alone() {
    let machines = Machines::without_server();
    let mode = |name: &str| {
        let found = std::fs::metadata(machines.path(name)).expect("it exists");
        found.permissions().mode() & 0o777
    };
    for args in [&["token", "show"][..], &["run", "-a", "demo", "/say hi"]] {
        let mut verb = machines.verb(From::Here, args);
        let output = verb.env("AGENTWIRE_DATA_DIR", machines.path("fresh/data")).output();
        assert!(output.expect("it runs").status.success());
        assert_eq!((mode("fresh"), mode("fresh/data")), (0o700, 0o700), "{args:?}");
    }
    assert_eq!(mode("fresh/data/demo"), 0o700);
}

#[test]
fn without_a_server_it_is_said_how_to_get_one() {
    let mut machines = Machines::new();
    let session = machines.session("/say one");
    machines.until(&session, "turnCompleted", 0);
    machines.kill();
    let id = &session.id().as_str()[..8];
    let told = machines.refused(From::Here, &["send", id, "hello"], 1);
    assert!(told.contains("which has exited") && told.contains("agentwire serve"), "{told}");
    assert!(told.contains(&format!("agentwire run --resume {id}")), "{told}");
    std::fs::remove_file(machines.path("data/server.json")).expect("a file");
    let told = machines.refused(From::Here, &["send", id, "hello"], 1);
    assert!(told.contains("no server is running; start one with `agentwire serve`"), "{told}");
    // A session that stopped with its server can be stopped and read without one.
    machines.told(From::Here, &["stop", id]);
    assert!(machines.told(From::Here, &["logs", id]).contains("\none\n"));
    let output = machines.run(From::Here, &["permit", "ls"]);
    assert_eq!((output.status.code(), error(&output).trim()), (Some(0), "no pending requests"));
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let machines = Machines::without_server();
    let id = over(&machines, "aaaaaaaa-0000-4000-8000-000000000001");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    // The pid is that of a live process, but only a held lock proves that the server runs.
    let written = format!(
        r#"{{"pid":{},"http":"http://{address}","insights":"","tokenFile":null,"version":"0"}}"#,
        std::process::id()
    );
    let file = machines.path("data/server.json");
    std::fs::write(&file, written).expect("a file");
    let told = machines.refused(From::Here, &["send", &id, "hello"], 1);
    assert!(told.contains("which has exited"), "{told}");
    let lock = std::fs::File::open(&file).expect("a file");
    lock.lock().expect("a lock");
    let told = machines.refused(From::Here, &["send", &id, "hello"], 1);
    assert!(told.contains(&format!("failed to reach the server at http://{address}")), "{told}");
    for verb in [["ls"].as_slice(), &["logs", "-f", "aaaa"], &["permit", "ls"]] {
        let output = machines
            .verb(From::Here, verb)
            .env("AGENTWIRE_URL", format!("http://{address}"))
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(error(&output).contains("failed to reach the server"), "{}", error(&output));
        assert!(error(&output).contains("; is it running?"), "{}", error(&output));
    }
}

#[test]
fn a_wrong_token_is_told_and_never_shown() {
    let machines = Machines::new();
    for (token, expected) in [
        (Some("not-the-token"), "does not accept this token: unknown token; create one"),
        (None, "requires a token; set AGENTWIRE_TOKEN or use --token-file"),
        (Some("a\u{7}b"), "invalid characters"),
    ] {
        let mut command = machines.verb(From::There, &["ls", "--log-level", "trace"]);
        match token {
            Some(token) => command.env("AGENTWIRE_TOKEN", token),
            None => command.env_remove("AGENTWIRE_TOKEN"),
        };
        let output = command.output().expect("it runs");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
        assert!(error(&output).contains(expected), "{}", error(&output));
        assert!(!error(&output).contains("not-the-token"), "{}", error(&output));
    }
    // The token can also be in a file. A flag wins over the environment.
    let file = machines.path("token");
    std::fs::write(&file, machines.token()).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let output = machines
        .verb(From::There, &["ls", "--json", "--token-file", file.to_str().expect("UTF-8")])
        .env("AGENTWIRE_TOKEN", "not-the-token")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", error(&output));
    let output = machines
        .verb(From::There, &["ls", "--json", "--url", &machines.url()])
        .env("AGENTWIRE_URL", "http://127.0.0.1:1")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(text(&output.stdout).trim(), "{\n  \"sessions\": []\n}");
}

#[test]
fn addresses_that_are_none_are_refused() {
    let machines = Machines::new();
    for url in ["127.0.0.1:8080", "ftp://127.0.0.1", "http://me:secret@127.0.0.1"] {
        let told = machines.refused(From::There, &["ls", "--url", url], 2);
        assert!(told.contains("failed to read the server's address"), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
    let output = machines.verb(From::There, &["prune", "--yes"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("on this machine"), "{}", error(&output));
}

/// The token is sent only to the named server, never to one that it redirects to.
#[test]
fn a_redirect_is_not_followed() {
    let machines = Machines::new();
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    other.set_nonblocking(true).expect("non-blocking mode");
    let elsewhere = format!("http://{}/", other.local_addr().expect("an address"));
    let first = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", first.local_addr().expect("an address"));
    let place_of = elsewhere.clone();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = first.accept().expect("a client");
        let mut asked = [0; 4096];
        let read = stream.read(&mut asked).expect("a request");
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {place_of}\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).expect("it reads");
        String::from_utf8_lossy(&asked[..read]).into_owned()
    });
    let told = machines.refused(From::There, &["ls", "--url", &url], 1);
    assert!(told.contains(&format!("it redirects to {elsewhere}")), "{told}");
    assert!(other.accept().is_err());
    assert!(answering.join().expect("an answer").contains("authorization: Bearer "));
}

#[test]
fn sessions_that_are_not_there_are_named() {
    let machines = Machines::new();
    let ids = ["aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"];
    for id in ids {
        over(&machines, id);
    }
    for from in EVERYWHERE {
        for verb in ["show", "attach", "logs", "export", "wait", "interrupt", "stop", "send"] {
            let told = |id: &str| {
                let args = [verb, id, "hello"];
                let args = if verb == "send" { &args[..] } else { &args[..2] };
                machines.refused(from, args, 2)
            };
            for missing in ["beef0000", "a", "00000000-0000-4000-8000-000000000000"] {
                let told = told(missing);
                assert!(told.contains(&format!("there is no session {missing}")), "{verb}: {told}");
            }
            let told = told("aaaaaaaa-0000");
            assert!(told.contains("several sessions start with aaaaaaaa-0000"), "{verb}: {told}");
        }
        assert!(machines.told(from, &["logs", ids[1]]).contains("\nover\n"));
    }
}

/// An ended session with that id that no server ran.
fn over(machines: &Machines, id: &str) -> String {
    let settings = Settings {
        data_dir: machines.path("data"),
        keeper: Some(env!("CARGO_BIN_EXE_agentwire").into()),
        ..Settings::default()
    };
    let work = machines.path("work").to_string_lossy().into_owned();
    machines.runtime.block_on(async {
        let hub = Hub::open(settings).await.expect("the engine opens");
        let mut new = NewSession::of(AgentType::Demo);
        new.id = Some(SessionId::from(id));
        new.prompt = Some(agentwire_protocol::Prompt::text("/say over"));
        new.config.working_directory = Some(work);
        let session = hub.start(new).await.expect("a session");
        session
            .until(|now| now.turns > 0 && now.state == agentwire_protocol::SessionState::Idle)
            .await;
        hub.shutdown().await;
    });
    id.to_owned()
}
