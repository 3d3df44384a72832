//! The program on pipes: every line is read with a deadline.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{Home, PATIENCE, working_in};

/// How many lines are read before a test asks for them.
const AHEAD: usize = 1 << 16;

pub(crate) struct Program {
    home: Home,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<Receiver<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// How the program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

impl Program {
    /// Starts this command of that home.
    pub(crate) fn start(home: &Home, command: &mut Command) -> Self {
        let mut program = Self::quiet(home, command);
        program.listen();
        program
    }

    /// Starts it, and reads nothing of its stdout yet.
    pub(crate) fn quiet(home: &Home, command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut said = child.stderr.take().expect("stderr");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            said.read_to_end(&mut text).expect("stderr can be read");
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Self { home: home.clone(), child, stdin, lines: None, stderr: Some(stderr) }
    }

    /// Reads what it says from now on.
    pub(crate) fn listen(&mut self) {
        let mut stdout = BufReader::new(self.child.stdout.take().expect("stdout"));
        let (said, lines) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).expect("stdout can be read") > 0 {
                assert_eq!(line.pop(), Some(b'\n'), "half a line on stdout");
                let text = String::from_utf8(std::mem::take(&mut line)).expect("stdout is UTF-8");
                if said.send(text).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says these bytes; false if it listens no more.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok()
    }

    #[expect(clippy::needless_pass_by_value, reason = "values and texts are said alike")]
    pub(crate) fn say(&mut self, line: impl ToString) {
        assert!(self.bytes(format!("{}\n", line.to_string()).as_bytes()), "it listens no more");
    }

    /// Says all this and then no more, while what it says is read.
    pub(crate) fn pour(&mut self, text: String) {
        drop(self.pour_on(text));
    }

    /// Says all this while what it says is read. It hears no more once what comes back is dropped.
    pub(crate) fn pour_on(&mut self, text: String) -> JoinHandle<ChildStdin> {
        let mut stdin = self.stdin.take().expect("stdin is open");
        std::thread::spawn(move || {
            stdin.write_all(text.as_bytes()).expect("it listens");
            stdin
        })
    }

    /// Says no more.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// The next line; none after the last.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.line_or(|| String::from("it says nothing"))
    }

    /// The next line. If it does not come in time, the test fails with this reason.
    pub(crate) fn line_or(&mut self, why: impl Fn() -> String) -> Option<String> {
        match self.lines.as_ref().expect("it is listened to").recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{}", why()),
        }
    }

    /// Waits until it ends by itself, with its stdin as it is, and gives the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
    }

    /// Says no more and waits for the end. Nothing may be unread.
    pub(crate) fn end(&mut self) -> Ended {
        self.hang_up();
        if let Some(line) = self.lines.is_some().then(|| self.line()).flatten() {
            panic!("unread: {line}");
        }
        let code = self.wait();
        let stderr = self.stderr.take().expect("stderr").join().expect("stderr");
        Ended { code, stderr }
    }

    /// Likewise, and no process of its home is left.
    pub(crate) fn end_alone(mut self) -> Ended {
        let ended = self.end();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = working_in(self.home.root());
            if left.is_empty() {
                return ended;
            }
            assert!(Instant::now() < deadline, "left behind: {left:?}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
