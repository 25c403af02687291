//! Data that are not what they seem: a note before the fit, an error with `--strict`.

use crate::program::Folder;

/// A table of `rows` rows with a measurement, and what is beside it.
fn table(rows: usize, beside: &[(&str, &dyn Fn(usize) -> String)]) -> String {
    let names: Vec<&str> = beside.iter().map(|(name, _)| *name).chain(["a", "b"]).collect();
    let row = |i: usize| {
        let x = (0.7 * i as f64).sin();
        let own: Vec<String> = beside.iter().map(|(_, of)| of(i)).collect();
        [own, vec![format!("{x:.4}"), format!("{:.4}", x * x + 0.3 * (1.9 * i as f64).cos())]]
            .concat()
            .join(",")
    };
    names.join(",") + "\n" + &(0..rows).map(|i| row(i) + "\n").collect::<String>()
}

#[test]
fn what_may_be_no_data_is_told_before_the_fit_and_refused_by_strict() {
    let folder = Folder::new();
    let fit = "fit t.csv --latent-dim 1 --inducing 4 --max-iter 3";
    let regress = "regress t.csv --target b --model sparse --inducing 4 --max-iter 3";
    for (name, of, what, lines) in [
        ("", &(|i: usize| i.to_string()) as &dyn Fn(usize) -> String, "identifier", vec![fit, regress]),
        ("n", &|i: usize| (i + 1).to_string(), "identifier", vec![fit]),
        ("day", &|i: usize| (20240101 + i % 28 + 100 * (i / 28)).to_string(), "dates", vec![fit, regress]),
        ("species", &|i: usize| (i % 3).to_string(), "3 classes", vec![fit]),
        (
            "m",
            &|i: usize| if i == 5 { "-999".into() } else { format!("{:.3}", (i as f64).cos()) },
            "-999.0 once",
            vec![fit, regress],
        ),
        (
            "m",
            &|i: usize| if i == 5 { "3e40".into() } else { format!("{:.3}", (i as f64).cos()) },
            "3e40",
            vec![fit],
        ),
    ] {
        folder.write("t.csv", &table(40, &[(name, of)]));
        for line in lines {
            let told = folder.run(line);
            assert!(told.code == 0 && told.err.contains("note: t.csv, column `"), "{line}: {told:?}");
            assert!(told.err.contains(what) && told.err.matches("note: ").count() == 1, "{line}: {told:?}");
            let refused = folder.run(&format!("{line} --strict"));
            assert!(refused.code == 3 && refused.err.contains(what) && refused.out.is_empty(), "{refused:?}");
        }
    }
    folder.write("t.csv", &table(40, &[]));
    let sound = folder.run(&format!("{fit} --strict"));
    assert!(sound.code == 0 && !sound.err.contains("note: "), "{sound:?}");
}

#[test]
fn dates_are_put_in_order_filled_or_refused() {
    let folder = Folder::new();
    let month = |k: usize| format!("{:04}-{:02}", 2000 + k / 12, k % 12 + 1);
    let row = |k: usize| format!("{},{:.4}\n", month(k), 3.0 + (0.5 * k as f64).sin());
    let line = "forecast t.csv --lag 3 --horizon 2 --max-iter 5 --effort quick";
    let run = |rows: Vec<usize>, line: &str| {
        folder.write("t.csv", &("month,y\n".to_string() + &rows.into_iter().map(row).collect::<String>()));
        folder.run(line)
    };
    let sound = run((0..40).collect(), line);
    assert!(sound.code == 0 && !sound.err.contains("note: "), "{sound:?}");
    for (rows, what) in [
        ((0..40).rev().collect::<Vec<_>>(), "sorted, the oldest first"),
        ([(20..40).collect::<Vec<_>>(), (0..20).collect()].concat(), "sorted, the oldest first"),
    ] {
        let turned = run(rows.clone(), line);
        assert!(turned.code == 0 && turned.err.contains(what), "{turned:?}");
        assert_eq!(turned.out, sound.out);
        assert_eq!(run(rows, &format!("{line} --strict")).code, 3);
    }
    let holed = run((0..40).filter(|k| !(11..22).contains(k)).collect(), line);
    assert!(
        holed.code == 0 && holed.err.contains("11 dates are left out, most between 2000-11 and 2001-11"),
        "{holed:?}"
    );
    assert!(holed.out.lines().nth(1).unwrap().starts_with("2003-05,"), "{holed:?}");
    let twice = run([(0..40).collect::<Vec<_>>(), vec![7]].concat(), line);
    assert!(twice.code == 3 && twice.err.contains("rows 8 and 41 are both of 2000-08"), "{twice:?}");
}

#[test]
fn the_future_has_no_rows_that_nobody_gave() {
    let folder = Folder::new();
    let row = |k: usize| {
        let (date, u) = (format!("{:04}-{:02}", 2000 + k / 12, k % 12 + 1), (0.3 * k as f64).cos());
        let y = if k < 36 { format!("{:.4}", 3.0 + u + (0.5 * k as f64).sin()) } else { String::new() };
        format!("{date},{u:.4},{y}\n")
    };
    // April 2003 is left out of what is to come.
    let rows = (0..41).filter(|k| *k != 39).map(row).collect::<String>();
    folder.write("t.csv", &("month,u,y\n".to_string() + &rows));
    let line = "forecast t.csv --target y --exogenous u --lag 3 --horizon 4 --max-iter 5 --effort quick";
    let told = folder.run(line);
    assert!(told.code == 0 && !told.err.contains("left out"), "{told:?}");
}
