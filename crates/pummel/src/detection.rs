//! `--protocol auto`: which servers a command line has asked, and what their answer makes of it.

use pummel_engine::run::{Inquiry, Undetected};
use pummel_fronts::job::{FrontInputs, Job, UsageError};
use pummel_fronts::native::options::{List, Targeted};
use pummel_fronts::native::{self, LoadArgs, RunArgs, SocketArgs, TargetArgs, Typed, TypedProtocol};
use pummel_fronts::values::Operation;
use pummel_logic::plan::Protocol;
use pummel_logic::plan::detect::Spoken;

use crate::job::detection::Detection;

/// Answers an inquiry.
pub type Ask<'a> = dyn Fn(&Inquiry) -> Result<(String, Spoken), Undetected> + 'a;

/// Returns the reason why the results of a job cannot be written, if they cannot.
pub type Unwritable<'a> = dyn Fn(&Job) -> Option<String> + 'a;

/// Options whose servers may have to be asked.
pub trait Detectable: Clone + Targeted {
    /// The servers, and how they are spoken to.
    fn target(&self) -> &TargetArgs;

    /// Options of the sockets.
    fn socket(&self) -> &SocketArgs;

    /// Whether a saved plan says everything.
    fn is_saved(&self) -> bool;

    /// Whether a cluster, a command or an operation is named that only RESP servers have.
    fn needs_resp(&self) -> bool;

    /// The options with the files read that values of theirs stand in, so that each is read once.
    ///
    /// # Errors
    /// Returns [`UsageError`] for the first file that cannot be read or holds no value.
    fn with_files(typed: &Typed<Self>, inputs: &FrontInputs) -> Result<Typed<Self>, UsageError>;

    /// The job of the options.
    ///
    /// # Errors
    /// Returns [`UsageError`] for the first value that is refused.
    fn job(typed: &Typed<Self>, inputs: &FrontInputs) -> Result<Job, UsageError>;
}

impl Detectable for RunArgs {
    fn target(&self) -> &TargetArgs {
        &self.target
    }

    fn socket(&self) -> &SocketArgs {
        &self.socket
    }

    fn is_saved(&self) -> bool {
        self.saved.plan.is_some()
    }

    fn needs_resp(&self) -> bool {
        let mut ops = self.mix.mix.iter().flat_map(|ops| &ops.0);
        self.target.cluster.cluster
            || !self.mix.command.is_empty()
            || ops.any(|(operation, _)| match operation {
                Operation::Verb(verb) => !Protocol::Text.row().verbs.contains(verb),
                Operation::Named(_) => true,
            })
    }

    fn with_files(typed: &Typed<RunArgs>, inputs: &FrontInputs) -> Result<Typed<RunArgs>, UsageError> {
        typed.with_files(inputs)
    }

    fn job(typed: &Typed<RunArgs>, inputs: &FrontInputs) -> Result<Job, UsageError> {
        native::run(typed, inputs)
    }
}

impl Detectable for LoadArgs {
    fn target(&self) -> &TargetArgs {
        &self.target
    }

    fn socket(&self) -> &SocketArgs {
        &self.socket
    }

    fn is_saved(&self) -> bool {
        false
    }

    fn needs_resp(&self) -> bool {
        self.target.cluster.cluster
    }

    fn with_files(typed: &Typed<LoadArgs>, inputs: &FrontInputs) -> Result<Typed<LoadArgs>, UsageError> {
        typed.with_files(inputs)
    }

    fn job(typed: &Typed<LoadArgs>, inputs: &FrontInputs) -> Result<Job, UsageError> {
        native::load(typed, inputs)
    }
}

/// Whether the servers of the options have to be asked which protocol they speak.
pub fn leaves_protocol_open<A: Detectable>(typed: &Typed<A>) -> bool {
    let target = typed.args.target();
    target.protocol == TypedProtocol::Auto && !target.udp && !typed.args.is_saved()
}

/// The options with the protocol that their servers speak, and what came of asking them. `ask` is called where the
/// protocol is left open, the options make a job in one of the protocols, and its results can be written. Options that make no
/// job in any protocol are returned with RESP2 where they name what only RESP servers have, so that their own error is told and
/// not that of another protocol; all others are returned as they are.
pub fn with_protocol<A: Detectable>(
    typed: &Typed<A>,
    inputs: &FrontInputs,
    ask: &Ask<'_>,
    unwritable: &Unwritable<'_>,
) -> (Typed<A>, Detection) {
    if !leaves_protocol_open(typed) {
        return (typed.clone(), Detection::Unasked);
    }
    // What is wrong with the options is told by the job that is made of them.
    let Ok(typed) = A::with_files(typed, inputs) else { return (typed.clone(), Detection::Unasked) };
    let target = typed.args.target();
    let Ok(servers) = native::servers(target, inputs) else { return (typed, Detection::Unasked) };
    let named = |protocol: Protocol| {
        let mut typed = typed.clone();
        let target = typed.args.target_mut();
        target.protocol = TypedProtocol::Named(protocol);
        // With their ports: the protocol that is found may have another one by default.
        target.server = vec![List(vec![servers.join(",")])];
        typed
    };
    let possible = |protocol| Some((protocol, A::job(&named(protocol), inputs).ok()?));
    let Some((wanted, job)) =
        std::iter::once(target.assumed_protocol()).chain(Protocol::ALL).find_map(possible)
    else {
        let typed = if typed.args.needs_resp() { named(Protocol::Resp2) } else { typed };
        return (typed, Detection::Unasked);
    };
    // Servers are not asked for a run that ends before it begins.
    if let Some(why) = unwritable(&job) {
        return (named(wanted), Detection::Refused(why.into()));
    }
    let inquiry = Inquiry {
        servers: servers.clone(),
        socket: native::socket(typed.args.socket()),
        tls: native::tls(target),
        timeout_ns: target.timeout,
    };
    let answer = ask(&inquiry);
    let is_cluster = answer.as_ref().is_ok_and(|(_, spoken)| spoken.is_cluster);
    let (protocol, detection) = Detection::of(answer, target.user.is_some(), wanted);
    // Only RESP3 has the messages of --tracking.
    let protocol = if target.tracking.is_some() && protocol.is_resp() { Protocol::Resp3 } else { protocol };
    let typed = named(protocol);
    match detection {
        Detection::Found(words) if is_cluster && names_no_route(&typed) => on_cluster(typed, words, inputs),
        detection => (typed, detection),
    }
}

/// Whether a command line leaves open how several servers are asked.
fn names_no_route<A: Detectable>(typed: &Typed<A>) -> bool {
    let options = &typed.args.target().cluster;
    !typed.has("--route") && !options.cluster && !options.no_cluster
}

/// The options with the route to the nodes of a cluster, whose server speaks as `words` say. Options that no cluster can follow stay as
/// they are.
fn on_cluster<A: Detectable>(typed: Typed<A>, words: String, inputs: &FrontInputs) -> (Typed<A>, Detection) {
    let mut on_cluster = typed.clone();
    on_cluster.args.target_mut().cluster.cluster = true;
    match A::job(&on_cluster, inputs) {
        Ok(_) => {
            let words = format!(
                "{words}, cluster mode: its nodes are asked, --no-cluster asks the named server alone"
            );
            (on_cluster, Detection::Found(words))
        }
        Err(_) => (typed, Detection::Found(format!("{words}, cluster mode"))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ffi::OsString;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Typed<RunArgs>,
    }

    fn inputs() -> FrontInputs {
        FrontInputs::without_files(1)
    }

    /// The servers that were asked, and the protocol and the servers of the plan, for a command line whose servers answer that
    /// they speak `spoken`.
    fn asked(words: &str, spoken: Protocol) -> (Vec<String>, Protocol, Vec<String>) {
        let words = std::iter::once("pummel").chain(words.split(' ')).map(OsString::from);
        let line = Line::try_parse_from(words).unwrap();
        let asked = RefCell::new(Vec::new());
        let ask = |inquiry: &Inquiry| {
            asked.borrow_mut().extend(inquiry.servers.clone());
            Ok((
                inquiry.servers[0].clone(),
                Spoken { protocol: spoken, software: None, login: None, is_cluster: false },
            ))
        };
        let (typed, _) = with_protocol(&line.run, &inputs(), &ask, &|_| None);
        let plan = RunArgs::job(&typed, &inputs()).unwrap().plan;
        (asked.into_inner(), plan.protocol, plan.servers.clone())
    }

    #[test]
    fn servers_are_asked_where_the_protocol_is_left_open_and_keep_the_ports_at_which_they_were_asked() {
        for (words, servers) in
            [("-s a", "a:11211"), ("-s a:6379", "a:6379"), ("-s a --protocol auto", "a:11211")]
        {
            let (asked, protocol, planned) = asked(words, Protocol::Resp2);
            assert_eq!((asked, protocol), (vec![servers.to_owned()], Protocol::Resp2), "{words}");
            assert_eq!(planned, [servers], "{words}");
        }
    }

    #[test]
    fn a_named_protocol_and_udp_ask_nothing() {
        for (words, protocol) in [("-s a --protocol meta", Protocol::Meta), ("-s a --udp", Protocol::Text)] {
            let (asked, planned, _) = asked(words, Protocol::Resp2);
            assert_eq!((asked.len(), planned), (0, protocol), "{words}");
        }
    }

    #[test]
    fn options_of_one_protocol_alone_let_servers_be_asked() {
        let (asked, protocol, _) = asked("-s a --mix hget:9,hset:1", Protocol::Resp2);
        assert_eq!((asked.len(), protocol), (1, Protocol::Resp2));
    }

    #[test]
    fn the_error_of_options_that_only_resp_servers_have_is_the_one_of_resp() {
        let rows: [(&[&str], &str); 5] = [
            (&["--command", "GET '__key__"], "a quote in the command is not closed"),
            (&["--command", "GET '__key__", "--load"], "a quote in the command is not closed"),
            (&["--command", ""], "a command needs at least one word"),
            (&["--command", "__kye__ x"], "'__kye__' is no place of a command"),
            (&["--mix", "hget:1,prepend:1"], "RESP servers have no prepend"),
        ];
        for (options, words) in rows {
            let line = Line::try_parse_from([&["pummel", "-s", "a"][..], options].concat()).unwrap();
            let ask = |_: &Inquiry| panic!("a server is asked");
            let (typed, detection) = with_protocol(&line.run, &inputs(), &ask, &|_| None);
            assert_eq!(detection, Detection::Unasked);
            let error = RunArgs::job(&typed, &inputs()).unwrap_err().to_string();
            assert!(error.contains(words), "{options:?}: {error}");
        }
    }

    #[test]
    fn a_command_that_another_protocol_is_to_load_is_refused_by_its_own_option() {
        let words = ["pummel", "-s", "a", "--protocol", "text", "--load", "--command", "GET __key__"];
        let line = Line::try_parse_from(words).unwrap();
        let error = RunArgs::job(&line.run, &inputs()).unwrap_err().to_string();
        assert!(error.starts_with("invalid value 'GET __key__' for '--command': "), "{error}");
    }

    #[test]
    fn no_server_is_asked_where_the_results_cannot_be_written() {
        let words = ["pummel", "-s", "a", "--json", "/no/such/folder/r.json"].map(OsString::from);
        let line = Line::try_parse_from(words).unwrap();
        let ask = |_: &Inquiry| panic!("a server is asked");
        let seen = RefCell::new(Vec::new());
        let unwritable = |job: &Job| {
            seen.borrow_mut().extend(job.outputs.files.iter().map(|(_, path)| path.to_owned()));
            Some("there is no such folder".to_owned())
        };
        let (typed, detection) = with_protocol(&line.run, &inputs(), &ask, &unwritable);
        assert_eq!(detection, Detection::Refused("there is no such folder".to_owned().into()));
        assert_eq!(seen.into_inner(), [std::path::PathBuf::from("/no/such/folder/r.json")]);
        assert!(RunArgs::job(&typed, &inputs()).is_ok(), "the job says what is wrong");
    }

    #[test]
    fn without_an_answer_the_port_decides() {
        let target = |words: &str| {
            let words = std::iter::once("pummel").chain(words.split(' ')).map(OsString::from);
            Line::try_parse_from(words).unwrap().run.args.target
        };
        assert_eq!(target("-s a").assumed_protocol(), Protocol::Text);
        assert_eq!(target("-s a:6379,b:6379").assumed_protocol(), Protocol::Resp2);
        assert_eq!(target("-s a:6379,b").assumed_protocol(), Protocol::Text);
        assert_eq!(target("-s a --database 2").assumed_protocol(), Protocol::Resp2);
        assert_eq!(target("-s a:6379 --udp").assumed_protocol(), Protocol::Text);
    }
}
