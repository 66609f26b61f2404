//! The operations of `verify` and `vectors`, as their help and docs/verification.md list them.

use exmy::vectors::function::Operation;

/// Columns of the list.
const WIDTH: usize = 80;

/// The operations by what they take and return, then the second names.
pub(crate) fn list() -> String {
    let mut text = String::from("Operations behind a format, as in f16_add, by what they take:\n");
    let of = |arity, predicate| {
        let all = Operation::all().filter(|operation| *operation != Operation::ScaleB);
        all.filter(move |it| it.arity() == arity && it.is_predicate() == predicate)
            .map(Operation::name)
            .collect::<Vec<_>>()
    };
    for (takes, names) in [
        ("a number", of(1, false)),
        ("two numbers", of(2, false)),
        ("two, giving 0 or 1", of(2, true)),
        ("three numbers", of(3, false)),
        ("a number and an i32", vec![Operation::ScaleB.name()]),
    ] {
        let mut line = format!("  {takes:<20}");
        for name in names {
            if line.len() + 1 + name.len() > WIDTH {
                text += &format!("{line}\n");
                line = " ".repeat(22);
            }
            line += &format!(" {name}");
        }
        text += &format!("{line}\n");
    }
    text += "Read as well, case and underscores not counting:\n";
    for (name, operation) in Operation::synonyms() {
        text += &format!("  {name:<20} {}\n", operation.name());
    }
    text
}
