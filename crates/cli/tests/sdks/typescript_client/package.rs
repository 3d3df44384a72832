//! The package: built once, packed, and installed for a program that uses it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::sync::OnceCell;

use crate::install::typescript;
use crate::shared::Home;

/// What is built, next to what tests it.
const PARTS: [&str; 6] = ["package.json", "README.md", "tsconfig.json", "src", "test", "scripts"];

pub(super) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/typescript").canonicalize().unwrap()
}

struct Built {
    directory: PathBuf,
    tarball: PathBuf,
}

async fn build() -> &'static Built {
    static BUILT: OnceCell<Built> = OnceCell::const_new();
    let make = async || {
        let packages = typescript().await;
        // One for each run: the sources may have changed.
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript-client");
        fs::create_dir_all(&place).unwrap();
        let lock = fs::File::create(place.join("lock")).unwrap();
        lock.lock().unwrap();
        let directory = place.join("package");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        for part in PARTS {
            told(Command::new("cp").arg("-a").arg(source().join(part)).arg(&directory));
        }
        symlink(packages.join("node_modules"), directory.join("node_modules")).unwrap();
        let compiler = packages.join("node_modules/typescript/bin/tsc");
        told(
            Command::new("node")
                .arg(compiler)
                .args(["-p", "tsconfig.json"])
                .current_dir(&directory),
        );
        let packed = told(
            Command::new("npm")
                .args(["pack", "--ignore-scripts", "--silent", "--pack-destination", ".."])
                .current_dir(&directory),
        );
        let tarball = place.join(packed.trim().lines().last().unwrap());
        Built { directory, tarball }
    };
    BUILT.get_or_init(make).await
}

/// The package with its tests, compiled.
pub(super) async fn built() -> PathBuf {
    build().await.directory.clone()
}

/// A program's directory, in which the package is installed.
pub(super) struct Consumer {
    pub(super) directory: PathBuf,
    pub(super) tarball: PathBuf,
}

impl Consumer {
    pub(super) async fn new(home: &Home) -> Self {
        let tarball = build().await.tarball.clone();
        let modules = typescript().await.join("node_modules");
        let directory = home.path("consumer");
        let own = directory.join("node_modules");
        fs::create_dir_all(own.join("@agentwire")).unwrap();
        fs::write(directory.join("package.json"), r#"{"private":true,"type":"module"}"#).unwrap();
        for name in ["typescript", "@types", "undici-types"] {
            symlink(modules.join(name), own.join(name)).unwrap();
        }
        let unpacked = own.join("@agentwire");
        told(Command::new("tar").arg("-xzf").arg(&tarball).arg("-C").arg(&unpacked));
        fs::rename(unpacked.join("package"), unpacked.join("client")).unwrap();
        Self { directory, tarball }
    }

    pub(super) fn package(&self) -> PathBuf {
        self.directory.join("node_modules/@agentwire/client")
    }

    /// Puts programs of the tests next to the package.
    pub(super) fn support(&self, names: &[&str]) {
        for name in names {
            fs::copy(source().join("support").join(name), self.directory.join(name)).unwrap();
        }
    }
}

/// What a program says; it must succeed.
fn told(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}{errors}");
    said
}
