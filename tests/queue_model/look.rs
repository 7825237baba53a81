//! Everything that a queue shows of itself, beside the model.

use std::sync::atomic::Ordering::Relaxed;

use conversant::queue::GroupStatus;

use super::pair::{Pair, limit, same};

pub fn look(pair: &Pair<'_>) -> Result<(), String> {
    let (snapshot, model) = (pair.queue.snapshot(), &pair.model);
    same("closed", snapshot.closed, model.closed)?;
    let alive: Vec<_> = (0..pair.groups.len()).filter(|&g| pair.alive(g)).collect();
    let waiting = alive
        .iter()
        .map(|&g| model.groups[g].waiting.len() as u64)
        .sum();
    same("waiting", snapshot.waiting, waiting)?;
    let in_flight = alive
        .iter()
        .map(|&g| u64::from(model.groups[g].units))
        .sum();
    same("in flight", snapshot.in_flight, in_flight)?;
    same(
        "sent",
        snapshot.sent,
        model.groups.iter().map(|g| g.sent).sum(),
    )?;
    let counts = pair.queue.counts();
    same("groups", counts.groups, alive.len())?;
    same("eligible", counts.eligible, model.count_eligible())?;
    same("turns", counts.turns, model.turns)?;
    same("failed", counts.failed, model.failed)?;
    same("dropped", counts.dropped, model.dropped)?;
    same("poisoned", counts.poisoned, model.poisoned().len())?;
    let backing_off = model.groups.iter().filter(|g| g.paused_until.is_some());
    same("backing off", counts.backing_off, backing_off.count())?;
    if let Some(outstanding) = counts.outstanding {
        same("outstanding", outstanding, model.outstanding)?;
    }
    let all = pair
        .waits
        .iter()
        .filter(|wait| wait.by_name.is_none())
        .count();
    same(
        "receives",
        counts.receives.waiting + counts.receives.notified,
        all,
    )?;
    let named = pair.waits.len() - all;
    same(
        "named receives",
        counts.named.waiting + counts.named.notified,
        named,
    )?;
    lanes(pair, &snapshot)?;
    poisoned(pair)?;
    let listed: Vec<_> = pair.queue.groups().map(|status| status.id).collect();
    let mut ids: Vec<_> = alive.iter().map(|&g| pair.groups[g].id).collect();
    ids.sort();
    same("names", listed, ids)
}

fn lanes(pair: &Pair<'_>, snapshot: &conversant::queue::Snapshot) -> Result<(), String> {
    let mut seen = 0;
    let mut lanes = 0;
    for (place, (lane, &number)) in pair.model.lanes.iter().zip(&pair.numbers).enumerate() {
        let mut alive = (0..pair.groups.len()).filter(|&g| pair.alive(g));
        if !lane.handle && !alive.any(|g| pair.model.groups[g].lane == place) {
            continue;
        }
        lanes += 1;
        let status = snapshot.lanes.iter().find(|status| status.number == number);
        let status = status.ok_or("a lane is missing")?;
        same("ending", status.ending, !lane.handle)?;
        same("weight", status.weight, lane.weight)?;
        same("cap", status.cap, limit(lane.cap))?;
        same("capacity of a lane", status.capacity, limit(lane.capacity))?;
        same("units of a lane", status.in_flight, lane.units)?;
        if lane.tiered {
            same("open tier", status.open_tier, lane.open_tier)?;
        }
        seen += status.groups.len();
        for status in &status.groups {
            let group = pair
                .groups
                .iter()
                .position(|handles| handles.id == status.id);
            group_status(pair, group.ok_or("a group that nobody made")?, status)?;
        }
    }
    same("lanes", snapshot.lanes.len(), lanes)?;
    let alive = (0..pair.groups.len()).filter(|&g| pair.alive(g)).count();
    same("groups of all lanes", seen, alive)
}

fn group_status(pair: &Pair<'_>, group: usize, status: &GroupStatus) -> Result<(), String> {
    let model = &pair.model.groups[group];
    let of = |what: &str| format!("{what} of group {group}");
    same(&of("limit"), status.limit, limit(model.limit))?;
    same(&of("capacity"), status.capacity, limit(model.capacity))?;
    same(&of("level"), status.level, model.level)?;
    same(&of("bump"), status.bump, model.bump.map(|(level, _)| level))?;
    same(&of("waiting"), status.waiting, model.waiting.len())?;
    same(&of("in flight"), status.in_flight, model.units)?;
    same(&of("sent"), status.sent, model.sent)?;
    let first = pair.queue.peek(status.id).expect("the group is there");
    let expected = model.waiting.first_key_value();
    same(
        &of("first"),
        first,
        expected.map(|(&number, message)| (number, message.failed)),
    )?;
    same(&of("why"), status.why, pair.model.why(group))
}

fn poisoned(pair: &Pair<'_>) -> Result<(), String> {
    let shown = pair.queue.poisoned().into_iter();
    let shown: Vec<_> = shown
        .map(|p| (p.group, p.message, p.attempts, p.waiting))
        .collect();
    let expected = pair.model.poisoned().into_iter().map(|g| {
        let group = &pair.model.groups[g];
        let (number, _) = group.poison.expect("it is poisoned");
        let failed = group.waiting[&number].failed;
        (pair.groups[g].id, number, failed, group.waiting.len())
    });
    same("poisoned", shown, expected.collect())
}

/// Who waits is woken.
pub fn woken(pair: &Pair<'_>) -> Result<(), String> {
    let any = pair.waits.iter().filter(|wait| wait.by_name.is_none());
    let (all, woken) = (
        any.clone().count(),
        any.filter(|wait| wait.is_woken()).count(),
    );
    let due = match pair.model.no_more() {
        Some(_) => all,
        None => all.min(pair.model.count_eligible() as usize),
    };
    if woken < due {
        return Err(format!("{woken} receives are woken of {due}"));
    }
    let (all, unreported) = (pair.watches.len(), pair.model.unreported().len());
    let woken = pair
        .watches
        .iter()
        .filter(|watch| watch.woken.0.load(Relaxed))
        .count();
    let due = pair.model.no_more().map_or(unreported, |_| all);
    if woken < due.min(all) {
        return Err(format!(
            "{woken} waits for poisoned groups are woken of {due}"
        ));
    }
    woken_by_name(pair)
}

/// One receive of each group whose turn could begin, or as many in a lane as that has room for.
fn woken_by_name(pair: &Pair<'_>) -> Result<(), String> {
    let mut lanes = vec![(0, None); pair.model.lanes.len()];
    for group in 0..pair.groups.len() {
        let named = pair.waits.iter().filter(|wait| wait.by_name == Some(group));
        let (all, woken) = (
            named.clone().count(),
            named.filter(|wait| wait.is_woken()).count(),
        );
        let (told, untold) = &mut lanes[pair.model.groups[group].lane];
        match pair.model.named_due(group) {
            Some(true) if woken < all => return Err(format!("group {group}: {woken} of {all}")),
            Some(false) if woken > 0 => *told += 1,
            Some(false) if all > 0 => *untold = Some(group),
            _ => {}
        }
    }
    for (lane, (told, untold)) in pair.model.lanes.iter().zip(lanes) {
        if let Some(group) = untold.filter(|_| told < lane.cap.saturating_sub(lane.units)) {
            return Err(format!(
                "group {group} could have a turn, and nobody is woken"
            ));
        }
    }
    Ok(())
}
