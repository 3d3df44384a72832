//! The SDKs, downloaded once into the target directory.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::child::run;

const PYTHON_SDK: &str = "0.2.182";
const TYPESCRIPT_SDK: &str = "0.3.325";
const NODE_20: &str = "20.20.2";
const NODE_22: &str = "22.23.3";
const NODE_24: &str = "24.21.0";
const DENO: &str = "2.9.6";
const BUN: &str = "1.4.4";
const CRAWLER: &str = "4.32.5";
/// What makes declarations of the server's description, what checks them, and what Node has.
const TYPES: [&str; 3] = ["openapi-typescript@7.13.0", "typescript@5.9.3", "@types/node@20.19.24"];

/// What examines a package before it is published.
const CHECKERS: [&str; 2] = ["publint@0.3.25", "@arethetypeswrong/cli@0.18.5"];
const BUNDLER: &str = "0.28.2";

/// Without a registry npm may wait for ever.
const PATIENCE: Duration = Duration::from_secs(400);

#[derive(Clone, Copy)]
pub(crate) enum Sdk {
    Python,
    TypeScript,
    TypeScriptOnNode24,
}

/// What was downloaded, or why it could not be.
type Found<T> = Result<T, String>;

impl Sdk {
    /// The program that plays scenarios, in an empty environment. They are in the files of this name. What
    /// they need next to them is put into the directory.
    pub(crate) async fn command(self, directory: &Path, scenarios: &str) -> Command {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
        let script = sources.join(format!("{scenarios}.mjs"));
        match self {
            Self::Python => {
                let mut command = cleaned(python().await.interpreter());
                command.env("PYTHONPATH", python().await.packages()).arg("-B");
                command.arg(sources.join(format!("{scenarios}.py")));
                command
            }
            Self::TypeScript => node("node".into(), directory, &script).await,
            Self::TypeScriptOnNode24 => node(node_24().await, directory, &script).await,
        }
    }
}

/// Node with a script that uses the SDK, in an empty environment. A copy of the script is put into the
/// directory.
pub(crate) async fn node(program: PathBuf, directory: &Path, script: &Path) -> Command {
    // Node looks for packages beside the file that wants them.
    let modules = directory.join("node_modules");
    let found = packages().await.join("node_modules");
    if !modules.exists() {
        symlink(found, modules).unwrap();
    }
    let copy = directory.join(script.file_name().unwrap());
    fs::copy(script, &copy).unwrap();
    let mut command = cleaned(program);
    command.arg(copy);
    command
}

fn cleaned(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// The program that crawls a server by its description, in an empty environment. A module next to it
/// configures it.
pub(crate) async fn crawler() -> Command {
    static CRAWLER_FOUND: OnceCell<Python> = OnceCell::const_new();
    let package = format!("schemathesis=={CRAWLER}");
    let find = async || required(find_python(&[&package]).await);
    let python = CRAWLER_FOUND.get_or_init(find).await;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
    let modules = std::env::join_paths([python.packages(), sources]).unwrap();
    let mut command = cleaned(python.interpreter());
    command.env("PYTHONPATH", modules).env("SCHEMATHESIS_HOOKS", "crawl");
    command.args(["-B", "-m", "schemathesis.cli"]);
    command
}

#[derive(Clone)]
struct Python {
    system: PathBuf,
    directory: PathBuf,
}

impl Python {
    fn interpreter(&self) -> PathBuf {
        let own = self.directory.join("venv/bin/python");
        if own.exists() { own } else { self.system.clone() }
    }

    /// Where packages are if there can be no virtual environment.
    fn packages(&self) -> PathBuf {
        self.directory.join("packages")
    }

    async fn install(&self, packages: &[&str]) -> Found<()> {
        let venv = self.directory.join("venv");
        let made = Command::new(&self.system).args(["-m", "venv"]).arg(&venv).output().unwrap();
        if !made.status.success() {
            // Debian has the module and, without python3-venv, not what it needs.
            let _ = fs::remove_dir_all(&venv);
        }
        told(Command::new(self.interpreter()).args(["-m", "pip", "--version"]))
            .map_err(|_| "needs python3-venv or python3-pip".to_owned())?;
        let mut pip = Command::new(self.interpreter());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
        pip.args(["--retries", "2", "--timeout", "20"]);
        // The wheel brings the vendor's program along; the source does not.
        pip.args(["--no-binary", "claude-agent-sdk"]);
        pip.args(packages);
        if !made.status.success() {
            pip.arg("--target").arg(self.packages());
        }
        fetch(pip, &self.directory).await
    }
}

async fn python() -> Python {
    static PYTHON: OnceCell<Python> = OnceCell::const_new();
    let package = format!("claude-agent-sdk=={PYTHON_SDK}");
    let find = async || required(find_python(&[&package]).await);
    PYTHON.get_or_init(find).await.clone()
}

/// A Python that has those packages.
async fn find_python(packages: &[&str]) -> Found<Python> {
    let probe = "import sys; v = sys.version_info; v < (3, 10) and sys.exit(1); \
                 print(sys.executable, '%d.%d' % v[:2], sep='\\n')";
    let said = told(Command::new("python3").args(["-c", probe]))
        .map_err(|_| "needs python3, 3.10 or newer".to_owned())?;
    let (system, version) = said.split_once('\n').unwrap();
    let name = format!("{}-python{version}", packages.join("-").replace("==", "-"));
    let python = |directory: &Path| Python { system: system.into(), directory: directory.into() };
    let install = async |directory: &Path| python(directory).install(packages).await;
    cached(&name, install).await.map(|directory| python(&directory))
}

/// The directory of the TypeScript SDK.
async fn packages() -> PathBuf {
    static PACKAGES: OnceCell<PathBuf> = OnceCell::const_new();
    let package = format!("@anthropic-ai/claude-agent-sdk@{TYPESCRIPT_SDK}");
    let name = format!("claude-agent-sdk-{TYPESCRIPT_SDK}-node");
    let find = async || required(find_node(&name, &[&package]).await);
    PACKAGES.get_or_init(find).await.clone()
}

/// The directory of what makes and checks TypeScript declarations.
pub(crate) async fn typescript() -> PathBuf {
    static PACKAGES: OnceCell<PathBuf> = OnceCell::const_new();
    let name = TYPES.join("-").replace(['@', '/'], "-");
    let find = async || required(find_node(&name, &TYPES).await);
    PACKAGES.get_or_init(find).await.clone()
}

/// A directory in which Node finds those packages.
async fn find_node(name: &str, packages: &[&str]) -> Found<PathBuf> {
    let missing = |_| "needs node, 18 or newer, and npm".to_owned();
    told(Command::new("npm").arg("--version")).map_err(missing)?;
    if major(&told(Command::new("node").arg("--version")).map_err(missing)?) < 18 {
        return Err(missing(String::new()));
    }
    cached(name, async |directory: &Path| npm(directory, packages).await).await
}

async fn node_24() -> PathBuf {
    static NODE: OnceCell<PathBuf> = OnceCell::const_new();
    let find = async || {
        if told(Command::new("node").arg("--version")).is_ok_and(|version| major(&version) >= 24) {
            return Ok("node".into());
        }
        let package = format!("node-linux-{}", machine()?);
        program(&package, NODE_24, "bin/node").await
    };
    NODE.get_or_init(async || required(find().await)).await.clone()
}

/// What runs JavaScript.
#[derive(Clone, Copy)]
pub(crate) enum Runtime {
    Node20,
    Node22,
    Deno,
    Bun,
}

/// The program of that runtime, from a package that has nothing else.
pub(crate) async fn runtime(runtime: Runtime) -> PathBuf {
    let find = async || {
        let machine = machine()?;
        match runtime {
            Runtime::Node20 => program(&format!("node-linux-{machine}"), NODE_20, "bin/node").await,
            Runtime::Node22 => program(&format!("node-linux-{machine}"), NODE_22, "bin/node").await,
            Runtime::Deno => program(&format!("@deno/linux-{machine}-glibc"), DENO, "deno").await,
            Runtime::Bun => {
                let machine = if machine == "arm64" { "aarch64" } else { machine };
                program(&format!("@oven/bun-linux-{machine}"), BUN, "bin/bun").await
            }
        }
    };
    required(find().await)
}

/// What makes one file of a package.
pub(crate) async fn bundler() -> PathBuf {
    let find =
        async || program(&format!("@esbuild/linux-{}", machine()?), BUNDLER, "bin/esbuild").await;
    required(find().await)
}

/// The directory of what examines packages.
pub(crate) async fn package_checkers() -> PathBuf {
    required(find_node(&CHECKERS.join("-").replace(['@', '/'], "-"), &CHECKERS).await)
}

fn machine() -> Found<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("needs programs for {other}")),
    }
}

/// A program in a package.
async fn program(package: &str, version: &str, path: &str) -> Found<PathBuf> {
    let pinned = format!("{package}@{version}");
    let install = async |directory: &Path| npm(directory, &[&pinned]).await;
    let directory = cached(&pinned.replace('/', "-"), install).await?;
    Ok(directory.join("node_modules").join(package).join(path))
}

/// Of `v20.20.2` 20.
fn major(version: &str) -> u32 {
    version.trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok()).unwrap()
}

/// Installs packages and what they need: no scripts, no program of the vendor's.
async fn npm(directory: &Path, packages: &[&str]) -> Found<()> {
    // Else npm goes up in search of a project.
    fs::write(directory.join("package.json"), "{\"private\":true}").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]);
    npm.args(["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]);
    npm.args(packages).current_dir(directory);
    fetch(npm, directory).await
}

/// The directory of this name. The first caller fills it; others wait.
async fn cached(name: &str, install: impl AsyncFnOnce(&Path) -> Found<()>) -> Found<PathBuf> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdks");
    fs::create_dir_all(&root).unwrap();
    let lock = File::create(root.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let directory = root.join(name);
    let is_whole = directory.join("whole");
    if !is_whole.exists() {
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        install(&directory).await?;
        fs::write(is_whole, "").unwrap();
    }
    Ok(directory)
}

async fn fetch(command: Command, directory: &Path) -> Found<()> {
    let installed = run(command, PATIENCE, &directory.join("log")).await;
    installed.map_err(|output| format!("failed to install: {output}"))
}

/// What a program says on stdout; if it fails, all that it said.
fn told(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() { Ok(stdout) } else { Err(format!("{stdout}\n{stderr}")) }
}

fn required<T>(found: Found<T>) -> T {
    found.unwrap_or_else(|why| panic!("the tests with the SDKs: {why}"))
}
