//! Configuration files, and the Plan or the message that comes of each.

use super::*;
use crate::job::FrontInputs;

/// The sample of the manual as it is rendered: indented, and with the ends of two comments on lines of their own.
const SAMPLE: &str = "\
          #comments should start with '#'
          #key
          #start_len end_len proportion
          #
          #proportion: indicates keys generated from one range accounts for the total
          generated keys
          #
          #          16 100 0.8
          key
          128 128 1
          #value
          #proportion: indicates values generated from one range accounts for the
          total generated values
          value
          2048 2048 1
          #cmd
          #         0    0.5
          cmd
          0    0.1
          1.0 0.9
";

/// What no file says is as it is without one.
const FILES: &[(&str, &str)] = &[
    (SAMPLE, "keys 128-128; values 2048-2048; 2 remarks"),
    // Nothing to read.
    ("", "Bad configuration file, no configuration find."),
    ("\n\n   \n\t\n", "Bad configuration file, no configuration find."),
    ("# only\n\n  # comments\n", "Bad configuration file, no configuration find."),
    ("junk\nmore junk\n", "Bad configuration file, no configuration find."),
    ("16 16 1\n", "Bad configuration file, no configuration find."),
    ("KEY\n16 16 1\n", "Bad configuration file, no configuration find."),
    // Sections.
    ("key\n16 16 1\n", "keys 16-16"),
    ("key\n16 16 1", "keys 16-16"),
    ("key\r\n16 20 1\r\nvalue\r\n9 9 1\r\n", "keys 16-20; values 9-9"),
    ("keysizes here\n16 20 1 and a comment\n", "keys 16-20"),
    ("values\n7 9 1\n", "values 7-9"),
    ("cmds of all kinds\n0 1\n", "set 1 get 0"),
    ("  key\n\t16\t20\t1\n", "keys 16-20"),
    ("value\n9 9 1\ncmd\n0 0.5\n1 0.5\nkey\n20 20 1\n", "keys 20-20; values 9-9; set 0.5 get 0.5"),
    ("key\nvalue\ncmd\n", ""),
    ("key\n16 16 .5\nvalue\n9 9 1\nkey\n20 20 5e-1\n", "keys 16-16,20-20; values 9-9"),
    // Ranges.
    ("key\n16 100 0.8\n101 200 0.1\n201 249 0.1\n", "keys 16-100,101-200,201-249"),
    ("value\n1 1000 0.8\n1001 10000 0.1\n10001 100000 0.1\n", "values 1-1000,1001-10000,10001-100000"),
    ("key\n16 250 1\n", "keys 16-250"),
    ("key\n15 250 1\n", "key length must be greater than 16 bytes."),
    ("key\n16 251 1\n", "key length must be less than 250 bytes."),
    ("value\n1 1048576 1\n", "values 1-1048576"),
    ("value\n0 9 1\n", "value length must be greater than 0 bytes."),
    ("value\n1 1048577 1\n", "key length must be less than or equal to 1M."),
    ("key\n20 16 1\n", "start length must be less than or equal to end length."),
    ("value\n9 1 1\n", "start length must be less than or equal to end length."),
    ("key\n99999999999 16 1\n", "key length must be less than 250 bytes."),
    ("key\n15 20 1\nvalue\n0 0 1\n", "key length must be greater than 16 bytes."),
    // Shares.
    ("key\n16 16 -1\n", "proportion must not be less than 0."),
    ("key\n16 16 nan\n", "proportion must not be less than 0."),
    ("cmd\n0 -0.1\n1 1.1\n", "proportion must not be less than 0."),
    ("key\n16 16 0.5\n20 20 0.2\n", "keys 16-16,20-20; 1 remarks"),
    ("value\n1 1 0.9995\n2 2 0.0004\n", "values 1-1,2-2"),
    // Commands.
    ("cmd\n0 0.5\n1 0.5\n", "set 0.5 get 0.5"),
    ("cmd\n1 0.9\n0 0.1\n", ""),
    ("cmd\n0.0 0.3\n1.0 0.3\n", "set 0.3 get 0.3"),
    ("cmd\n0 1\n", "set 1 get 0"),
    ("cmd\n1 1\n", "set 0 get 1; presets"),
    ("cmd\n0 0.0009\n1 0.9991\n", "set 0.0009 get 0.9991; presets"),
    ("cmd\n0 0.5\n0 0.2\n1 0.8\n", "set 0.2 get 0.8"),
    ("cmd\n0 0.1\n1 0.9\n2 0.5\n", "1 remarks"),
    // What is no data ends its section, and is spoken of.
    ("key\n16 16 1\noops\n20 20 1\nvalue\n9 9 1\n", "keys 16-16; values 9-9; 2 remarks"),
    ("key\n16 16\nvalue\n9 9 1\n", "values 9-9; 1 remarks"),
    ("key\n-16 16 1\n", "1 remarks"),
    ("key\n16,20,1\n", "1 remarks"),
    ("VALUE\n9 9 1\nkey\n20 20 1\n", "keys 20-20; 2 remarks"),
];

#[test]
fn every_file_has_a_plan_or_a_message() {
    let front = FrontInputs::without_files(42);
    for (text, expected) in FILES {
        let open = |_: &Path| Ok(text.as_bytes().to_vec());
        let inputs = Machine { inputs: &front, home: None, cpus: &[3, 5], open: &open };
        let words = ["-s", "a", "-F", "it"].map(str::to_owned);
        assert_eq!(meaning_of(read(words.into_iter(), &inputs)), *expected, "{text:?}");
    }
}

#[test]
fn a_file_that_is_no_text_is_read_as_far_as_it_is() {
    let front = FrontInputs::without_files(42);
    let open = |_: &Path| Ok(b"key\n16 16 1 \xff\xfe\n\xff\n".to_vec());
    let inputs = Machine { inputs: &front, home: None, cpus: &[3, 5], open: &open };
    let words = ["-s", "a", "-F", "it"].map(str::to_owned);
    assert_eq!(meaning_of(read(words.into_iter(), &inputs)), "keys 16-16; 1 remarks");
}
