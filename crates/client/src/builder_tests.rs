//! Which gateway the builder selects.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use tempfile::TempDir;

use super::*;

/// A server without sessions; sends the tokens it receives.
fn server() -> (String, std::sync::mpsc::Receiver<String>) {
    answering("200 OK", r#"{"sessions":[]}"#)
}

fn answering(
    status: &'static str,
    body: &'static str,
) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (send, tokens) = std::sync::mpsc::sync_channel(8);
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut said = [0; 4096];
            let read = client.read(&mut said).unwrap_or(0);
            let text = String::from_utf8_lossy(&said[..read]).into_owned();
            let token = text.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
            let _ = send.try_send(token.unwrap_or_default().to_owned());
            let answer = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = client.write_all(answer.as_bytes());
        }
    });
    (address, tokens)
}

/// A builder without environment variables.
fn builder() -> ClientBuilder {
    ClientBuilder { environment: |_| None, ..ClientBuilder::default() }
}

fn name(selected: Result<Arc<dyn Transport>, AgentError>) -> String {
    selected.unwrap().name()
}

/// A data directory of a server that runs as long as the file is locked.
fn data_dir(address: &str) -> (TempDir, std::fs::File) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("server.json");
    let text = format!(r#"{{"pid":{},"http":"http://{address}"}}"#, std::process::id());
    std::fs::write(&file, text).unwrap();
    let lock = std::fs::File::open(&file).unwrap();
    lock.lock().unwrap();
    (place, lock)
}

fn program(place: &TempDir) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = place.path().join("agentwire");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn child_of(program: &Path) -> String {
    format!("{} unified", program.display())
}

#[tokio::test]
async fn a_named_server_takes_precedence() {
    let (named, token) = server();
    let (found, _) = server();
    let (place, _lock) = data_dir(&found);
    let all = builder().data_dir(place.path()).program(program(&place));
    let url = format!("http://{named}");
    let selected = all.clone().url(&*url).token("secret").select_transport().await;
    assert_eq!(name(selected), format!("the server at {url}"));
    assert_eq!(token.recv().unwrap(), "secret");
    let shown = format!("{:?}", all.clone().token("secret").url("http://me:secret@h"));
    assert!(!shown.contains("secret"), "{shown}");
    assert!(format!("{:?}", all.clone().url("http://h")).contains("http://h"));
    let file = place.path().join("token");
    std::fs::write(&file, "from a file\n").unwrap();
    all.clone().url(&*url).token_file(&file).select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "from a file");
    // A named server that does not answer is not replaced by another.
    let nobody = all.clone().url("http://127.0.0.1:1").select_transport().await;
    assert_eq!(nobody.unwrap_err().kind(), AgentErrorType::ConnectionFailed);
    // A running server takes precedence over a child process.
    assert_eq!(name(all.select_transport().await), format!("the server at http://{found}"));
}

/// A server that restarts at another address is found there, with the same token.
#[tokio::test]
async fn a_moved_server_is_found_again() {
    let (first, token) = server();
    let (place, lock) = data_dir(&first);
    let selected = builder().data_dir(place.path()).token("mine").select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "mine");
    let (second, token) = server();
    let file = place.path().join("server.json");
    std::fs::remove_file(&file).unwrap();
    drop(lock);
    std::fs::write(&file, format!(r#"{{"pid":1,"http":"http://{second}"}}"#)).unwrap();
    let lock = std::fs::File::open(&file).unwrap();
    lock.lock().unwrap();
    let client = AgentClient::over(selected);
    client.sessions(crate::SessionFilter::default()).await.unwrap();
    assert_eq!(token.recv().unwrap(), "mine");
    assert_eq!(client.transport().name(), format!("the server at http://{second}"));
}

#[tokio::test]
async fn without_a_server_a_child_is_used() {
    let place = tempfile::tempdir().unwrap();
    let expected = child_of(&program(&place));
    let with = builder().data_dir(place.path()).program(program(&place));
    assert_eq!(name(with.select_transport().await), expected);
    // A server.json without a server behind it.
    let (gone, lock) = data_dir("127.0.0.1:1");
    let with = builder().data_dir(gone.path()).program(program(&place));
    assert_eq!(name(with.clone().select_transport().await), expected);
    drop(lock);
    assert_eq!(name(with.select_transport().await), expected);
}

/// A server that refuses the client owns its sessions: no child process is started beside it.
#[tokio::test]
async fn a_server_that_refuses_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let (address, _) =
        answering("401 Unauthorized", r#"{"code":"unauthorized","detail":"no such token"}"#);
    let (refusing, _lock) = data_dir(&address);
    let with = builder().data_dir(refusing.path()).program(program(&place));
    let error = with.clone().token("old").select_transport().await.unwrap_err();
    assert_eq!(error.kind(), AgentErrorType::AuthenticationFailed, "{error}");
    let (address, _) =
        answering("429 Too Many Requests", r#"{"code":"overloaded","detail":"later"}"#);
    let (busy, _lock) = data_dir(&address);
    let error = with.data_dir(busy.path()).select_transport().await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}

#[tokio::test]
async fn the_error_lists_everything_tried() {
    let place = tempfile::tempdir().unwrap();
    let error = builder().data_dir(place.path()).select_transport().await.unwrap_err();
    let message = error.to_string();
    for tried in ["no server is running", "agentwire is not on PATH", "AGENTWIRE_BIN"] {
        assert!(message.contains(tried), "{message}");
    }
    let missing = place.path().join("none");
    let error = builder().data_dir(place.path()).program(&missing).select_transport().await;
    assert!(error.unwrap_err().to_string().contains("none is not an executable program"));
}

#[tokio::test]
async fn the_environment_fills_in_missing_settings() {
    fn environment(name: &str) -> Option<OsString> {
        match name {
            "AGENTWIRE_URL" => Some("nonsense".into()),
            "AGENTWIRE_TOKEN" => Some("secret".into()),
            _ => None,
        }
    }
    let from = ClientBuilder { environment, ..ClientBuilder::default() };
    let error = from.clone().select_transport().await.unwrap_err();
    assert!(error.to_string().contains("must start with http"), "{error}");
    let (address, token) = server();
    let url = format!("http://{address}");
    from.clone().url(&*url).select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "secret");
    from.clone().url(&*url).token("mine").select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "mine");
    // A data directory in the builder overrides both the URL and the token of the environment.
    let (place, _lock) = data_dir(&address);
    let here = from.data_dir(place.path());
    assert_eq!(name(here.clone().select_transport().await), format!("the server at {url}"));
    assert_eq!(token.recv().unwrap(), "");
    here.ca_file(place.path().join("ca")).select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "");
    let empty = tempfile::tempdir().unwrap();
    let child = ClientBuilder { environment, ..builder() }.program(program(&empty));
    assert_eq!(name(child.select_transport().await), child_of(&program(&empty)));
}

#[tokio::test]
async fn a_program_name_is_looked_up_on_path() {
    fn environment(name: &str) -> Option<OsString> {
        (name == "PATH").then(|| "/nowhere:/bin:/usr/bin".into())
    }
    let empty = tempfile::tempdir().unwrap();
    let with = ClientBuilder { environment, ..builder() }.data_dir(empty.path());
    let found = name(with.clone().program("sh").select_transport().await);
    assert!(found.starts_with('/') && found.ends_with("/sh unified"), "{found}");
    let error = with.program("no-such-program").select_transport().await.unwrap_err();
    assert!(error.to_string().contains("no-such-program is not on PATH"), "{error}");
}
