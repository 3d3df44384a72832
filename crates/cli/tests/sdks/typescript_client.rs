//! The TypeScript client (`clients/typescript`): built, packed and installed as its users get it.

mod package;
mod scenarios;

use std::fs;
use std::process::Command;
use std::time::Duration;

use self::package::{Consumer, built, source};
use crate::child::{assert_none_left, run};
use crate::install::{self, Runtime};
use crate::shared::{AGENTWIRE, BROWSER, Home, SDKS, Server};

const DEADLINE: Duration = Duration::from_secs(150);

/// The most that the client may weigh for a page: bundled, minified and compressed.
const MOST_FOR_A_PAGE: u64 = 12 * 1024;

/// The most that the package may weigh, with its declarations and comments.
const MOST_PACKED: u64 = 52 * 1024;

/// Run `node clients/typescript/scripts/generate.mjs` to rewrite what is stale.
#[tokio::test]
async fn types_are_current() {
    if !SDKS.is_on() {
        return;
    }
    let home = Home::new();
    let mut command = node(&home);
    command.arg(source().join("scripts/generate.mjs")).arg("--check");
    succeeds(command, &home).await;
}

/// The law over a script, the coverage of the API, and the parser.
#[tokio::test]
async fn its_own_tests_pass() {
    if !SDKS.is_on() {
        return;
    }
    let home = Home::new();
    let mut command = node(&home);
    command.current_dir(built().await).args(["--test", "test/"]);
    command.env("AGENTWIRE_SCHEMA", source().join("../../schema").canonicalize().unwrap());
    let said = succeeds(command, &home).await;
    let passed = said.lines().find_map(|line| line.strip_prefix("# pass "));
    assert!(passed.is_some_and(|passed| passed.parse::<u32>().unwrap() > 30), "{said}");
}

/// Tools that examine packages find nothing, it depends on nothing, and it is small.
#[tokio::test]
async fn the_package_is_well_formed_and_small() {
    if !SDKS.is_on() {
        return;
    }
    let home = Home::new();
    let consumer = Consumer::new(&home).await;
    let package = consumer.package();
    let described = fs::read_to_string(package.join("package.json")).unwrap();
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    for kind in ["dependencies", "peerDependencies", "optionalDependencies"] {
        assert!(described[kind].is_null(), "{described}");
    }
    let packed = fs::metadata(&consumer.tarball).unwrap().len();
    assert!(packed < MOST_PACKED, "the package has {packed} bytes");

    let checkers = install::package_checkers().await.join("node_modules");
    let mut command = node(&home);
    command.arg(checkers.join("publint/src/cli.js")).args(["run", "--strict", "--pack", "false"]);
    command.arg(&package);
    let said = succeeds(command, &home).await;
    assert!(said.contains("All good!"), "{said}");
    let mut command = node(&home);
    command.arg(checkers.join("@arethetypeswrong/cli/dist/index.js"));
    command.args(["--profile", "esm-only", "--no-color"]).arg(&consumer.tarball);
    let said = succeeds(command, &home).await;
    assert!(said.contains("@agentwire/client/node"), "{said}");

    let mut command = Command::new(install::bundler().await);
    command.current_dir(home.root()).args(["--bundle", "--minify", "--format=esm"]);
    command.arg(package.join("dist/index.js")).arg("--outfile=page.js");
    succeeds(command, &home).await;
    let compressed =
        Command::new("gzip").args(["-9c", "page.js"]).current_dir(home.root()).output();
    let size = compressed.unwrap().stdout.len() as u64;
    assert!(size > 1024 && size < MOST_FOR_A_PAGE, "the client has {size} bytes for a page");
}

/// The examples pass the strictest checks of the compiler, without the types of a browser or with no others, and
/// do what they say.
#[tokio::test]
async fn the_examples_compile_and_run() {
    if !SDKS.is_on() {
        return;
    }
    let home = Home::new();
    let consumer = Consumer::new(&home).await;
    let examples = consumer.directory.join("examples");
    fs::create_dir(&examples).unwrap();
    for name in ["quickstart.ts", "permissions.ts", "dashboard.ts", "tsconfig.json"] {
        fs::copy(source().join("examples").join(name), examples.join(name)).unwrap();
    }
    compile(&home, &["-p", "examples/tsconfig.json"]).await.unwrap();
    // A page: no types of Node, and the declarations of the package are checked too.
    fs::write(consumer.directory.join("page.mts"), PAGE).unwrap();
    fs::write(consumer.directory.join("tsconfig.json"), PAGE_SETTINGS).unwrap();
    compile(&home, &["-p", "tsconfig.json"]).await.unwrap();
    let wrong = PAGE.replace("event.content", "event.contents");
    fs::write(consumer.directory.join("page.mts"), wrong).unwrap();
    let refused = compile(&home, &["-p", "tsconfig.json"]).await.unwrap_err();
    assert!(refused.contains("TS2551"), "{refused}");

    let server = Server::at(&home, &[]);
    for (name, parts) in [
        ("quickstart", &["I am the demo agent.", " tokens", "This is turn 2."][..]),
        (
            "permissions",
            &[
                "allowed: Write",
                "denied: Bash rm -rf build",
                "allowed with another input: echo from the agent",
                "asked: Which colour?",
                "denied by client",
                "answered by client",
            ],
        ),
        ("dashboard", &["idle", "4 sessions are idle"]),
    ] {
        let mut command = node(&home);
        command.arg(examples.join("out").join(name).with_extension("js"));
        command.env("AGENTWIRE_DATA_DIR", home.data()).current_dir(home.work());
        let said = succeeds(command, &home).await;
        for part in parts {
            assert!(said.contains(part), "{name}: no {part:?} in {said}");
        }
    }
    drop(server);
    assert_none_left(home.root().to_str().unwrap()).await;
}

const PAGE_SETTINGS: &str = r#"{
  "compilerOptions": {
    "strict": true, "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true, "noEmit": true,
    "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "lib": ["es2022", "dom"], "types": []
  },
  "files": ["page.mts"]
}"#;

const PAGE: &str = r#"
import { connect, GapError, scripted, type Event, type SessionRequest } from "@agentwire/client";
import type { TextChunkEvent } from "@agentwire/client/types";

export const request: SessionRequest = { agentType: "demo", prompt: "Hi" };
export async function read(signal: AbortSignal): Promise<string> {
  const client = await connect({ transport: scripted([]), signal });
  const session = await client.sessions.create(request, { signal });
  let text = "";
  try {
    for await (const event of session.events({ signal })) {
      if (event.type === "textChunk") text += event.content;
      if (event.type === "turnCompleted") text += event.usage.totalTokens;
    }
  } catch (error) {
    if (error instanceof GapError) text += error.from + error.to;
  }
  return text;
}
export const isText = (event: Event): event is TextChunkEvent => event.type === "textChunk";
"#;

/// The same conversation in Node 20 and 22, Deno and Bun: over fetch, found through `server.json`, and with a child.
#[tokio::test]
async fn it_runs_in_node_20() {
    converses(Runtime::Node20, &[], true).await;
}

#[tokio::test]
async fn it_runs_in_node_22() {
    converses(Runtime::Node22, &[], true).await;
}

#[tokio::test]
async fn it_runs_in_deno() {
    let args = ["run", "--allow-all", "--no-lock", "--no-remote", "--node-modules-dir=manual"];
    converses(Runtime::Deno, &args, false).await;
}

#[tokio::test]
async fn it_runs_in_bun() {
    converses(Runtime::Bun, &[], true).await;
}

async fn converses(runtime: Runtime, args: &[&str], requires: bool) {
    if !SDKS.is_on() {
        return;
    }
    let home = Home::new();
    let consumer = Consumer::new(&home).await;
    consumer.support(&["smoke.mjs", "converse.mjs", "required.cjs"]);
    let program = install::runtime(runtime).await;
    let start = |script: &str| {
        let mut command = Command::new(&program);
        settle(&mut command, &home);
        command.current_dir(&consumer.directory).args(args).arg(script);
        command
    };
    let server = Server::at(&home, &[]);
    let mut command = start("smoke.mjs");
    command
        .env("SMOKE_URL", format!("http://{}", server.http))
        .env("SMOKE_TOKEN", &server.token)
        .env("SMOKE_DIRECTORY", home.work())
        .env("SMOKE_DATA", home.data())
        .env("SMOKE_CHILD_DATA", home.path("child"))
        .env("SMOKE_PROGRAM", AGENTWIRE)
        .env("AGENTWIRE_CONFIG", home.path("config.toml"));
    let said = succeeds(command, &home).await;
    assert!(said.contains("smoke: done"), "{said}");
    if requires {
        let said = succeeds(start("required.cjs"), &home).await;
        assert!(said.contains("required: done"), "{said}");
    }
    drop(server);
    assert_none_left(home.root().to_str().unwrap()).await;
}

/// The same conversation on a page of the server's own site.
#[tokio::test]
async fn it_runs_in_a_browser() {
    if !SDKS.is_on() || !BROWSER.is_on() {
        return;
    }
    let home = Home::new();
    let consumer = Consumer::new(&home).await;
    consumer.support(&["browser.mjs", "converse.mjs"]);
    let path = std::env::var_os("PATH").unwrap();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut programs =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    let browser = programs.find(|program| program.is_file()).expect("chromium is on PATH");
    let server = Server::at(&home, &[]);
    let mut command = node(&home);
    command.arg(consumer.directory.join("browser.mjs")).arg(consumer.package().join("dist"));
    command.arg(format!("http://{}", server.http)).arg(&server.token);
    command.arg(home.work()).arg(browser).arg(home.path("profile")).env("TMPDIR", home.root());
    let said = succeeds(command, &home).await;
    assert!(said.contains("browser: done"), "{said}");
    drop(server);
    assert_none_left(home.root().to_str().unwrap()).await;
}

/// Node in an empty environment.
fn node(home: &Home) -> Command {
    let mut command = Command::new("node");
    settle(&mut command, home);
    command
}

fn settle(command: &mut Command, home: &Home) {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", home.path("home")).current_dir(home.root());
}

async fn compile(home: &Home, args: &[&str]) -> Result<(), String> {
    let mut command = node(home);
    command.arg("node_modules/typescript/bin/tsc").args(args).current_dir(home.path("consumer"));
    run(command, DEADLINE, &home.path("output")).await
}

/// Runs a program that must succeed, and returns what it says.
async fn succeeds(command: Command, home: &Home) -> String {
    let log = home.path("output");
    run(command, DEADLINE, &log).await.unwrap_or_else(|said| panic!("{said}"));
    fs::read_to_string(log).unwrap()
}
