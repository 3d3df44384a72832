//! How options are recognised in a word.

use super::is;

#[test]
fn options_are_found_shortened_bundled_and_glued() {
    for (word, option, valued) in [
        ("--output", "--output", ""),
        ("--output=x", "--output", ""),
        ("--outp=x", "--output", ""),
        ("--o=x", "--output", ""),
        ("-o", "-o", ""),
        ("-ox", "-o", ""),
        ("-uo", "-o", "t"),
        ("-exec", "-exec", ""),
        ("--vettool=x", "-vettool", ""),
        ("run", "run", ""),
    ] {
        assert!(is(word, option, valued), "{word} is {option}");
    }
    for (word, option, valued) in [
        ("--outputs", "--output", ""),
        ("--", "--output", ""),
        ("-to", "-o", "t"),
        ("--foo", "-o", ""),
        ("-executable", "-exec", ""),
        ("output", "--output", ""),
        ("-run", "run", ""),
    ] {
        assert!(!is(word, option, valued), "{word} is not {option}");
    }
}
