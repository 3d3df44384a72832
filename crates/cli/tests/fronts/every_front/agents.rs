//! Every front over every fixture, and over the demo agent.

use crate::every_front::drive::drive;
use crate::recording::{DEMO, Recording, recordings};
use crate::speaker::{Case, FRONTS, front};

fn over(name: &str, folder: &str) {
    let mut cases: Vec<Case> = recordings(folder).into_iter().map(case).collect();
    cases.sort_by_key(|case| case.agent.driver);
    for cases in cases.chunk_by(|one, other| one.agent == other.agent) {
        drive(front(name), cases);
    }
}

fn case(recording: Recording) -> Case {
    let Recording { name, agent, prompts, text } = recording;
    Case { name, agent, prompts, recording: Some(text) }
}

fn demo(name: &str) {
    let prompts = ["Show me around.", "/say hello"].map(str::to_owned).into();
    drive(front(name), &[Case { name: "demo".to_owned(), agent: DEMO, prompts, recording: None }]);
}

macro_rules! fronts {
    ($($front:ident)*) => {
        #[test]
        fn every_front_is_here() {
            let names: Vec<&str> = FRONTS.iter().map(|row| row.name).collect();
            assert_eq!(names, [$(stringify!($front)),*]);
        }
        $(mod $front {
            #[test]
            fn demo() {
                super::demo(stringify!($front));
            }
            #[test]
            fn claude() {
                super::over(stringify!($front), "claude");
            }
            #[test]
            fn codex() {
                super::over(stringify!($front), "codex");
            }
            #[test]
            fn gemini() {
                super::over(stringify!($front), "gemini");
            }
            #[test]
            fn acp() {
                super::over(stringify!($front), "acp");
            }
        })*
    };
}

fronts! { unified claude backend rpc }
