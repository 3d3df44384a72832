//! Which gateway is found, of those that are named or there.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use tempfile::TempDir;

use super::*;

/// A server that has no sessions; says which token came.
fn server() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = std::sync::mpsc::sync_channel(8);
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut said = [0; 4096];
            let read = client.read(&mut said).unwrap_or(0);
            let text = String::from_utf8_lossy(&said[..read]).into_owned();
            let token = text.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
            let _ = tell.try_send(token.unwrap_or_default().to_owned());
            let body = r#"{"sessions":[]}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = client.write_all(answer.as_bytes());
        }
    });
    (address, told)
}

/// A builder that knows nothing of the environment of the test.
fn builder() -> ClientBuilder {
    ClientBuilder { environment: |_| None, ..ClientBuilder::default() }
}

fn name(selected: Result<Arc<dyn Transport>, AgentError>) -> String {
    selected.unwrap().name()
}

/// A data directory in which a server says that it is there, for as long as the file is held.
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

#[tokio::test]
async fn what_is_named_wins_over_what_is_found() {
    let (named, token) = server();
    let (found, _) = server();
    let (place, _lock) = data_dir(&found);
    let all = builder().data_dir(place.path()).program(program(&place));
    let url = format!("http://{named}");
    let selected = all.clone().url(&*url).token("secret").select_transport().await;
    assert_eq!(name(selected), format!("the server at {url}"));
    assert_eq!(token.recv().unwrap(), "secret");
    assert!(!format!("{:?}", all.clone().token("secret")).contains("secret"));
    let file = place.path().join("token");
    std::fs::write(&file, "from a file\n").unwrap();
    all.clone().url(&*url).token_file(&file).select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "from a file");
    // One that is named and does not answer is not replaced by another.
    let nobody = all.clone().url("http://127.0.0.1:1").select_transport().await;
    assert_eq!(nobody.unwrap_err().kind(), AgentErrorType::ConnectionFailed);
    // What runs on this machine comes before what would have to be started.
    assert_eq!(name(all.select_transport().await), format!("the server at http://{found}"));
}

#[tokio::test]
async fn where_no_server_answers_a_child_is_started() {
    let place = tempfile::tempdir().unwrap();
    let expected = format!("{} unified", program(&place).display());
    let with = builder().data_dir(place.path()).program(program(&place));
    assert_eq!(name(with.select_transport().await), expected);
    // One that says it is there and is not.
    let (gone, lock) = data_dir("127.0.0.1:1");
    let with = builder().data_dir(gone.path()).program(program(&place));
    assert_eq!(name(with.clone().select_transport().await), expected);
    drop(lock);
    assert_eq!(name(with.select_transport().await), expected);
}

#[tokio::test]
async fn an_error_names_all_that_was_tried() {
    let place = tempfile::tempdir().unwrap();
    let error = builder().data_dir(place.path()).select_transport().await.unwrap_err();
    let message = error.to_string();
    for tried in ["no server runs here", "agentwire is not on PATH", "AGENTWIRE_BIN"] {
        assert!(message.contains(tried), "{message}");
    }
    let missing = place.path().join("none");
    let error = builder().data_dir(place.path()).program(&missing).select_transport().await;
    assert!(error.unwrap_err().to_string().contains("none is no program"));
}

#[tokio::test]
async fn the_environment_says_what_nobody_said() {
    fn environment(name: &str) -> Option<OsString> {
        match name {
            "AGENTWIRE_URL" => Some("nonsense".into()),
            "AGENTWIRE_TOKEN" => Some("secret".into()),
            _ => None,
        }
    }
    let from = ClientBuilder { environment, ..ClientBuilder::default() };
    let error = from.clone().select_transport().await.unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
    let (address, token) = server();
    let url = format!("http://{address}");
    from.clone().url(&*url).select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "secret");
    from.url(&*url).token("mine").select_transport().await.unwrap();
    assert_eq!(token.recv().unwrap(), "mine");
}
