use serde_json::json;
use tokio::time::advance;

use super::*;

const LEASE: &str = "/registry/leases/kube-system/kube-scheduler";

/// A lease that is written again and again, a revision each time.
#[derive(Default)]
struct LeaseWriter {
    terms: Terms,
    revision: Revision,
}

impl LeaseWriter {
    fn put(&mut self, holder: &str, transitions: u64) -> Result<(), String> {
        self.revision += 1;
        let spec = json!({ "holderIdentity": holder, "leaseTransitions": transitions, "leaseDurationSeconds": 15 });
        self.terms.stored(LEASE, self.revision, Some(&json!({ "spec": spec })))
    }

    fn author(&self, holder: &str, begun: Revision) -> Author {
        Author { lease: SCHEDULER, holder: holder.into(), begun }
    }

    fn write(&mut self, holder: &str, begun: Revision) -> Result<(), String> {
        self.revision += 1;
        self.terms.authors.note(self.revision, self.author(holder, begun));
        self.terms.stored("/registry/pods/default/a", self.revision, Some(&json!({})))
    }
}

const DURATION: Duration = Duration::from_secs(15);

#[tokio::test(start_paused = true)]
async fn what_is_written_in_a_term_is_committed_in_it() {
    let mut told = LeaseWriter::default();
    told.put("one", 0).expect("it is free");
    let begun = told.revision;
    told.write("one", begun).expect("it is its term");
    told.put("one", 0).expect("a renewal");
    told.write("one", begun).expect("it is still its term");
    advance(DURATION).await;
    told.put("two", 1).expect("it has run out");
    let late = told.write("one", begun).expect_err("its term is over");
    assert!(late.contains("/registry/pods/default/a was written at 6 by one"), "{late}");
    told.write("two", told.revision).expect("it is its term");
    advance(DURATION).await;
    told.put("one", 2).expect("it has run out");
    let former = told.write("one", begun).expect_err("that was another term of its");
    assert!(former.contains("in its term of 1, and the term is that of \"one\" since 8"), "{former}");
    told.terms.stored(LEASE, 10, None).expect("somebody deletes it");
    assert!(told.write("one", 8).is_err(), "nobody leads");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_when_it_has_run_out_and_each_time_counts() {
    let mut told = LeaseWriter::default();
    told.put("one", 0).expect("it is free");
    advance(DURATION / 2).await;
    told.put("one", 0).expect("a renewal");
    advance(DURATION / 2).await;
    let early = told.put("two", 1).expect_err("one has it");
    assert!(early.contains("two takes kube-scheduler from one, whose it is for another 7.5s"), "{early}");

    let mut told = LeaseWriter::default();
    told.put("one", 0).expect("it is free");
    told.put("", 0).expect("it is given back");
    told.put("two", 1).expect("nobody has it");
    assert_eq!((told.terms.n_elections, told.terms.holder(SCHEDULER)), (2, Some("two")));
    assert!(told.put("two", 2).expect_err("nothing was taken").contains("counts 1 transitions and then 2"));
    let mut told = LeaseWriter::default();
    told.put("one", 4).expect("it is free");
    advance(DURATION).await;
    assert!(told.put("two", 4).expect_err("it was taken").contains("counts 4 transitions and then 4"));
}

#[tokio::test(start_paused = true)]
async fn nobody_thinks_that_it_leads_while_another_does() {
    let mut told = LeaseWriter::default();
    let (one, freezer) = (watch::Sender::new(1), Freezer::default());
    told.put("one", 0).expect("it is free");
    told.terms.beliefs.add(told.author("one", 1), one.subscribe(), freezer.clone());
    assert!(told.terms.one_leads().is_err(), "nobody controls");
    advance(DURATION).await;
    freezer.freeze();
    told.put("two", 1).expect("one stands still, and cannot know it");
    freezer.thaw();
    advance(DURATION).await;
    let both = told.put("three", 2).expect_err("one has not ended its term").clone();
    assert!(both.contains("and one still thinks that it leads"), "{both}");
    one.send_replace(0);
    advance(DURATION).await;
    told.put("two", 3).expect("one knows that it does not lead");
}
