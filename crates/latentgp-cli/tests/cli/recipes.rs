//! What every model has: checkpoints from which a fit goes on, options of both doors, priors and likelihoods by name.

use crate::program::Folder;

/// A table with two inputs, the error of one, values, counts and days.
fn folder() -> Folder {
    let folder = Folder::new();
    let row = |i: usize| {
        let (a, b) = ((1.7 * i as f64).sin(), (0.9 * i as f64).cos());
        let outlier = if i % 13 == 5 { 4.0 } else { 0.0 };
        let y = (2.0 * a).sin() + 0.1 * (13.0 * i as f64).cos() + outlier;
        format!("{a},{b},0.1,{y},{},{i}\n", (3.0 + 3.0 * a) as usize)
    };
    let rows: String = (0..60).map(row).collect();
    folder.write("t.csv", &format!("a,b,e,y,k,day\n{rows}"));
    folder
}

#[test]
fn every_model_goes_on_from_its_checkpoint_to_the_same_number() {
    let folder = folder();
    for line in [
        "fit t.csv --exclude e,k,day --model gplvm --restarts 2",
        "fit t.csv --exclude e,k,day --inducing 6 --effort normal",
        "fit t.csv --exclude e,k,day --inducing 6 --kernel matern32 --effort normal",
        "fit t.csv --exclude e,k,day --model gplvm --effort normal",
        "regress t.csv --target y --exclude e,k,day --effort normal",
        "regress t.csv --target y --exclude e,k,day --model sparse --inducing 8",
        "regress t.csv --target y --exclude e,k,day --model vdmgp --inducing 8 --latent-dim 1 --effort normal",
        "regress t.csv --target y --exclude e,k,day --model spgp-dr --inducing 8 --latent-dim 1",
        "regress t.csv --target k --exclude e,y,day --likelihood poisson",
    ] {
        let command = line.split(' ').next().unwrap();
        let whole = folder.json(&format!("{line} --max-iter 6 --json --quiet"));
        folder.ok(&format!("{line} --max-iter 6 --checkpoint c.lgp --checkpoint-every 0 --quiet"));
        assert!(folder.ok("inspect c.lgp").contains("unfinished"), "{line}");
        let rest = folder.json(&format!("{command} --resume c.lgp --json --quiet"));
        let key = if command == "fit" { "bound" } else { "log_evidence" };
        assert_eq!(whole[key], rest[key], "{line}");
        let other = folder.run(&format!("{command} --resume c.lgp --kernel matern12"));
        assert!(other.code == 2 && other.err.contains("contradicts"), "{other:?}");
    }
}

#[test]
fn a_fit_at_its_limit_of_iterations_goes_on() {
    let folder = folder();
    for (line, key) in [
        ("fit t.csv --exclude e,k,day --inducing 6 --effort normal", "bound"),
        ("regress t.csv --target y --exclude e,k,day --effort normal", "log_evidence"),
    ] {
        let command = line.split(' ').next().unwrap();
        let short = folder.json(&format!("{line} --max-iter 3 --json --quiet --out m.lgp"));
        assert_eq!((&short["converged"], &short["stop_reason"]), (&false.into(), &"max_iterations".into()));
        assert!(short["begun"].as_u64() > Some(2), "{short}");
        let again = folder.run(&format!("{command} --resume m.lgp --out m.lgp"));
        assert!(again.code == 2 && again.err.contains("--max-iter"), "{again:?}");
        let more =
            folder.json(&format!("{command} --resume m.lgp --max-iter 300 --json --quiet --out m.lgp"));
        assert!(more[key].as_f64() > short[key].as_f64(), "{more}");
        assert!(more["gradient_norm"].is_number(), "{more}");
    }
}

#[test]
fn an_effort_and_restarts_exclude_one_another() {
    let folder = folder();
    let both = folder.run("fit t.csv --effort quick --restarts 2");
    assert!(both.code == 2 && both.err.contains("--restarts"), "{both:?}");
    let wrong = folder.run("regress t.csv --target y --effort much");
    assert!(wrong.code == 2 && wrong.err.contains("thorough"), "{wrong:?}");
}

#[test]
fn a_prior_takes_its_column_out_of_the_table() {
    let folder = folder();
    let line = "fit t.csv --exclude e,k --inducing 6 --max-iter 5 --json --quiet";
    let told = folder.json(&format!("{line} --prior times(column=day,std=2) --out m.lgp"));
    assert_eq!(told["d"], 3);
    folder.ok("transform m.lgp t.csv");
    let wrong = folder.run(&format!("{line} --prior times(column=week,std=2)"));
    assert!(wrong.code == 3 && wrong.err.contains("week"), "{wrong:?}");
    let wrong = folder.run(&format!("{line} --prior tims(column=day)"));
    assert!(wrong.code == 2 && wrong.err.contains("times"), "{wrong:?}");
    let wrong = folder.run(&format!("{line} --model gplvm --inducing 3 --prior normal"));
    assert!(wrong.code == 2, "{wrong:?}");
}

#[test]
fn outliers_have_a_likelihood_and_classes_may_have_input_errors() {
    let folder = folder();
    let line = "regress t.csv --target y --exclude k,day,e --model sparse --inducing 10 --json --quiet";
    let robust = folder.json(&format!("{line} --likelihood student_t --out r.lgp"));
    assert!(robust["log_evidence"].as_f64() > folder.json(line)["log_evidence"].as_f64(), "{robust}");
    assert!(folder.ok("predict r.lgp t.csv").lines().count() == 61);
    let wrong = folder.run("regress t.csv --target y --exclude k,day,e --likelihood student_t");
    assert!(wrong.code != 0 && wrong.err.contains("sparse"), "{wrong:?}");
    let counts = "regress t.csv --target k --exclude y,day --model sparse --inducing 8 --likelihood poisson";
    folder.ok(&format!("{counts} --input-std a=e --max-iter 5 --out c.lgp --quiet"));
    folder.ok("predict c.lgp t.csv");
}
