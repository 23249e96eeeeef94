//! Picture 6, the members: p99 and rate of each agent or server over time on equal axes, or a dot for each where there are many.

use maud::Markup;

use super::axis::{CountAxis, TimeAxis, round_text, round_time, time};
use super::svg::{Anchor, Layout, Picture, cut_name};
use crate::numbers::number;

/// Members that get a panel of their own at most.
pub const PANELS_MAX: usize = 24;

/// Most characters of a name in a panel.
const NAME_CHARS_MAX: usize = 24;

/// Dots that are named below the axis at most; of more only those far above the others are named.
const NAMED_DOTS_MAX: usize = 4;

/// Points of a panel's line at most.
const POINTS_MAX: usize = 80;

/// Members among which one may lie far above the others, at least.
const OUTLYING_LEAST: usize = 4;

/// Panels beside each other.
fn columns_of(layout: Layout) -> usize {
    if layout.is_narrow() { 1 } else { 3 }
}

/// One agent or server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberLine {
    /// The name of the member.
    pub name: String,
    /// p99 of the whole run in microseconds; `None` where it is not known.
    pub p99_us: Option<f64>,
    /// Completed requests per second of the whole run.
    pub rate: f64,
    /// The slices: middle in seconds, p99 in microseconds where it is known, completed requests per second.
    pub slices: Vec<(f64, Option<f64>, f64)>,
}

/// Whether each member's p99 lies above the median of the others by more than twice their median distance from it, and by a
/// tenth of it at least. Of fewer than four members none is known to.
pub fn outlying(members: &[MemberLine]) -> Vec<bool> {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let of = |place: usize| {
        let others = || members.iter().enumerate().filter(move |(other, _)| *other != place);
        let times: Vec<f64> = others().filter_map(|(_, member)| member.p99_us).collect();
        let (own, middle) = (members[place].p99_us?, median(times.clone())?);
        let distance = median(times.iter().map(|us| (us - middle).abs()).collect())?;
        Some(own > middle + (2.0 * distance).max(middle * 0.1))
    };
    (0..members.len()).map(|place| members.len() >= OUTLYING_LEAST && of(place).unwrap_or(false)).collect()
}

/// Whether each member has a panel of its own; else each is a dot.
pub fn has_panels(members: &[MemberLine]) -> bool {
    let has_slices = members.iter().any(|member| member.slices.iter().any(|slice| slice.1.is_some()));
    members.len() <= PANELS_MAX && has_slices
}

/// The picture over `length_s` seconds; `None` of fewer than two members, and where no p99 is known.
pub fn draw(
    layout: Layout,
    name: &str,
    members: &[MemberLine],
    length_s: f64,
    title: &str,
) -> Option<Markup> {
    if members.len() < 2 {
        return None;
    }
    let framed = outlying(members);
    let mut order: Vec<usize> = (0..members.len()).collect();
    // The worst come first; those that do not know p99 are the worst.
    let p99 = |place: &usize| members[*place].p99_us.unwrap_or(f64::INFINITY);
    order.sort_by(|one, other| p99(other).total_cmp(&p99(one)));
    if has_panels(members) {
        panels((layout, name), members, (&order, &framed), length_s, title)
    } else {
        dots(layout, name, members, &framed, title)
    }
}

const PANEL_HEIGHT: f64 = 104.0;
const PANEL_GAP: f64 = 18.0;

/// The area of a panel.
struct Panel {
    left: f64,
    right: f64,
    top: f64,
    middle: f64,
    bottom: f64,
}

impl Panel {
    fn of(layout: Layout, place: usize) -> Panel {
        let columns = columns_of(layout);
        let (left, right) = (layout.left - 4.0, layout.width - 8.0);
        let width = (right - left - PANEL_GAP * (columns - 1) as f64) / columns as f64;
        let left = left + (place % columns) as f64 * (width + PANEL_GAP);
        let top = 34.0 + (place / columns) as f64 * (PANEL_HEIGHT + 22.0);
        Panel { left, right: left + width, top, middle: top + 64.0, bottom: top + PANEL_HEIGHT - 6.0 }
    }

    fn at(&self, at_s: f64, length_s: f64) -> f64 {
        self.left + (at_s / length_s.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * (self.right - self.left)
    }
}

fn panels(
    (layout, name): (Layout, &str),
    members: &[MemberLine],
    (order, framed): (&[usize], &[bool]),
    length_s: f64,
    title: &str,
) -> Option<Markup> {
    let columns = columns_of(layout);
    let times = || members.iter().flat_map(|member| member.slices.iter().filter_map(|slice| slice.1));
    TimeAxis::of(times(), 0.0, 1.0)?;
    let most =
        members.iter().flat_map(|member| member.slices.iter().map(|slice| slice.2)).fold(0.0, f64::max);
    let last = Panel::of(layout, members.len() - 1);
    let mut picture = Picture::new(layout, last.bottom + 20.0);
    let words = "upper line p99, lower line completed per second; grey: the others";
    picture.words("tick", (2.0, 14.0), Anchor::Start, words);
    let mut said = Vec::new();
    for (place, number_of) in order.iter().enumerate() {
        let (panel, member) = (Panel::of(layout, place), &members[*number_of]);
        let (times_up, rate) = (
            TimeAxis::of(times(), panel.top + 14.0, panel.middle)?,
            CountAxis::of(most, panel.middle + 6.0, panel.bottom),
        );
        let frame = if framed[*number_of] { "frame outlying" } else { "frame" };
        picture.rect(frame, (panel.left, panel.top), (panel.right - panel.left, panel.bottom - panel.top));
        let line = |member: &MemberLine| {
            let slices = thinned(&member.slices);
            let p99 =
                slices.iter().filter_map(|slice| Some((panel.at(slice.0, length_s), times_up.at(slice.1?))));
            let rates = slices.iter().map(|slice| (panel.at(slice.0, length_s), rate.at(slice.2)));
            (p99.collect::<Vec<(f64, f64)>>(), rates.collect::<Vec<(f64, f64)>>())
        };
        // The others are one line, so that a picture of 24 members stays small: their median.
        let others = median_slices(members, *number_of);
        picture.polyline("line others", &line(&others).0);
        let (p99, rates) = line(member);
        picture.polyline("line p99", &p99);
        if let [only] = p99.as_slice() {
            picture.dot("dot p99", *only, 2.5);
        }
        picture.polyline("line response", &rates);
        if place % columns == 0 {
            let (low, high) = times_up.ends();
            let before = panel.left - 5.0;
            picture.words("tick", (before, panel.top + 20.0), Anchor::End, &round_time(high));
            picture.words("tick", (before, panel.middle + 2.0), Anchor::End, &round_time(low));
            picture.words("tick", (before, panel.middle + 16.0), Anchor::End, &round_text(most.round()));
            picture.words("tick", (before, panel.bottom), Anchor::End, "0");
        }
        if place + columns >= members.len() {
            let (below, end) = (panel.bottom + 12.0, format!("{} s", number(length_s)));
            picture.words("tick", (panel.left, below), Anchor::Start, "0");
            picture.words("tick", (panel.right, below), Anchor::End, &end);
        }
        let short = shortened(&member.name);
        picture.words("tick strong", (panel.left + 4.0, panel.top + 11.0), Anchor::Start, &short);
        let figure = member.p99_us.map_or("?".to_owned(), time);
        picture.words("tick", (panel.right - 4.0, panel.top + 11.0), Anchor::End, &figure);
        said.push((panel.left, panel.right - panel.left, (panel.top, panel.bottom), words_of(member)));
    }
    picture.areas(&said);
    let description = "A panel for each member on the same axes, the slowest first: p99 over time above, completed requests per second below.";
    Some(picture.finish(name, title, description))
}

/// The median p99 of the others at each slice of a member.
fn median_slices(members: &[MemberLine], place: usize) -> MemberLine {
    let slices = members[place].slices.iter().enumerate().map(|(slice, (at_s, ..))| {
        let others = members.iter().enumerate().filter(|(other, _)| *other != place);
        let mut times: Vec<f64> = others.filter_map(|(_, other)| other.slices.get(slice)?.1).collect();
        times.sort_by(f64::total_cmp);
        (*at_s, times.get(times.len() / 2).copied(), 0.0)
    });
    MemberLine { slices: slices.collect(), ..MemberLine::default() }
}

/// At most [`POINTS_MAX`] slices, of which each is the worst of its neighbours.
fn thinned(slices: &[(f64, Option<f64>, f64)]) -> Vec<(f64, Option<f64>, f64)> {
    let each = slices.len().div_ceil(POINTS_MAX).max(1);
    let of = |chunk: &[(f64, Option<f64>, f64)]| {
        let p99 = chunk.iter().filter_map(|slice| slice.1).reduce(f64::max);
        let rate = chunk.iter().map(|slice| slice.2).sum::<f64>() / chunk.len() as f64;
        (chunk[0].0, p99, rate)
    };
    slices.chunks(each).map(of).collect()
}

/// One dot for each member on a line of p99.
fn dots(layout: Layout, name: &str, members: &[MemberLine], framed: &[bool], title: &str) -> Option<Markup> {
    let (top, bottom) = (28.0, 200.0);
    let Layout { left, right, .. } = layout;
    let times_up = TimeAxis::of(members.iter().filter_map(|member| member.p99_us), top, bottom)?;
    let mut picture = Picture::new(layout, bottom + 30.0);
    times_up.draw(&mut picture, "p99, logarithmic");
    let width = layout.across() / members.len() as f64;
    let mut said = Vec::new();
    for (place, member) in members.iter().enumerate() {
        let x = left + (place as f64 + 0.5) * width;
        if let Some(us) = member.p99_us {
            let class = if framed[place] { "dot p99" } else { "dot p50" };
            picture.dot(class, (x, times_up.at(us)), 4.0);
            if framed[place] && members.len() > NAMED_DOTS_MAX {
                let short = shortened(&member.name);
                let (anchor, x) =
                    if x > right - 120.0 { (Anchor::End, x - 7.0) } else { (Anchor::Start, x + 7.0) };
                picture.words("tick", (x, times_up.at(us) + 4.0), anchor, &short);
            }
        }
        if members.len() <= NAMED_DOTS_MAX {
            picture.words("tick", (x, bottom + 17.0), Anchor::Middle, &shortened(&member.name));
        }
        said.push((left + place as f64 * width, width, words_of(member)));
    }
    picture.line("axis", (left, bottom), (right, bottom));
    if members.len() > NAMED_DOTS_MAX {
        let words = format!("{} members, in the order of the result", members.len());
        picture.words("tick", (left, bottom + 17.0), Anchor::Start, &words);
    }
    picture.columns(top, bottom, &said);
    let description =
        "A dot for each member: p99 of its requests upwards, members in their order to the right.";
    Some(picture.finish(name, title, description))
}

fn words_of(member: &MemberLine) -> String {
    let p99 = member.p99_us.map_or("not known".to_owned(), time);
    format!("{}: p99 {p99}, {}/s", member.name, number(member.rate))
}

/// A name in the room that a panel has.
fn shortened(name: &str) -> String {
    cut_name(name, NAME_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;

    #[test]
    fn long_names_say_that_they_are_cut_off() {
        assert_eq!(shortened("agent-7:5556"), "agent-7:5556");
        assert_eq!(shortened("agent-7.rack3.example.com:5556"), "agent-7.rack3.example.c\u{2026}");
    }

    fn member(name: usize, p99_us: f64) -> MemberLine {
        let slices = (0..10).map(|at| (f64::from(at), Some(p99_us + f64::from(at)), 100.0)).collect();
        MemberLine { name: format!("agent-{name}"), p99_us: Some(p99_us), rate: 100.0, slices }
    }

    #[test]
    fn a_member_far_above_the_others_is_framed_and_small_differences_are_not() {
        let mut members: Vec<MemberLine> = (0..6).map(|place| member(place, 100.0 + place as f64)).collect();
        assert_eq!(outlying(&members), [false; 6]);
        members[2].p99_us = Some(300.0);
        assert_eq!(outlying(&members), [false, false, true, false, false, false]);
        let drawn = draw(WIDE, "members", &members, 10.0, "members").expect("a picture").into_string();
        assert_eq!(
            (drawn.matches("class=\"frame\"").count(), drawn.matches("frame outlying").count()),
            (5, 1)
        );
        let first = drawn.find("agent-2").expect("it is named");
        assert!(first < drawn.find("agent-0").expect("it is named"), "the worst comes first");
    }

    #[test]
    fn many_members_are_dots_and_one_is_no_picture() {
        let many: Vec<MemberLine> = (0..30).map(|place| member(place, 100.0)).collect();
        let drawn = draw(WIDE, "members", &many, 10.0, "members").expect("a picture").into_string();
        assert_eq!(drawn.matches("<circle").count(), 30);
        assert!(draw(WIDE, "members", &many[..1], 10.0, "members").is_none());
        let none: Vec<MemberLine> = (0..3).map(|_| MemberLine::default()).collect();
        assert!(draw(WIDE, "members", &none, 10.0, "members").is_none());
    }
}
