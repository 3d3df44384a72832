//! Tries every route of the server's OpenAPI description, with valid and invalid data.

use std::time::Duration;

use crate::child::{assert_none_left, run};
use crate::harness::serve;
use crate::install::crawler;
use crate::shared::{Home, SDKS};

const DEADLINE: Duration = Duration::from_secs(240);

#[tokio::test]
async fn the_server_is_as_it_is_described() {
    if !SDKS.is_on() {
        return;
    }
    let mut command = crawler().await;
    let home = Home::new();
    let server = serve(&home);
    let home = home.root();
    let address = format!("http://{}/openapi.json", server.http);
    let token = format!("Authorization: Bearer {}", server.token);
    command.args(["run", &address, "--header", &token]);
    command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", "12"]);
    // Data that the schema allows may still be refused: a schema cannot say which modes an agent has, or
    // that a WebSocket is required.
    command.args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"]);
    command.args(["--generation-deterministic", "--no-color"]);
    command.args(["--continue-on-failure", "--request-timeout", "30"]);
    command.env("HOME", home).current_dir(home);
    let ended = run(command, DEADLINE, &home.join("output")).await;
    drop(server);
    assert_none_left(home.to_str().unwrap()).await;
    let said = std::fs::read_to_string(home.join("output")).unwrap();
    if let Err(said) = ended {
        panic!("{said}");
    }
    // Every route of the description was tested.
    let (tested, all) = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("Selected: ")?.split_once('/'))
        .unwrap();
    assert_eq!(tested, all, "{said}");
    assert!(said.contains(&format!("Tested: {all}")), "{said}");
}
