//! The run with real threads: two read for the front end, `readers` for the back end, and this
//! one for the clients.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use conversant::dialog::Event;

use crate::Options;
use crate::clients::Clients;
use crate::report::Outcome;
use crate::service::{Note, Service, conclude};

pub(crate) fn run(options: &Options) -> Outcome {
    let service = Service::new(options);
    let order = Mutex::new(Vec::new());
    let mut clients = Clients::default();
    let served = thread::scope(|scope| {
        let front = [(), ()].map(|()| scope.spawn(|| relay(&service)));
        let back: Vec<_> = (0..options.readers)
            .map(|_| scope.spawn(|| serve(options, &service, &order)))
            .collect();
        for number in 0..options.requests {
            clients.ask(&service, number, None);
        }
        for &number in &options.cancel {
            clients.cancel(number);
        }
        while !clients.are_done() {
            let turn = service.clients.receive().wait();
            let mut turn = turn.expect("nobody closes it");
            while let Some(delivery) = turn.next() {
                clients.hear(delivery);
            }
        }
        // All events that are still on their way go from the front end to the back end.
        service.front.close();
        for reader in front {
            reader.join().expect("a reader does not panic");
        }
        service.back.close();
        let readers = back.into_iter();
        readers
            .map(|reader| reader.join().expect("a reader does not panic"))
            .collect()
    });
    Outcome {
        order: order.into_inner().unwrap_or_default(),
        readers: served,
        left: service.left(),
        clients,
        took: None,
    }
}

fn relay(service: &Service) {
    while let Ok(mut turn) = service.front.receive().wait() {
        while let Some(delivery) = turn.next() {
            service.relay(delivery);
        }
    }
}

/// A reader of the back end. Returns what it served.
fn serve(options: &Options, service: &Service, order: &Mutex<Vec<u32>>) -> Vec<u32> {
    let mut served = Vec::new();
    while let Ok(mut turn) = service.back.receive().wait() {
        while let Some(delivery) = turn.next() {
            if let Event::Message(Note::Request { number, .. }) = delivery.event {
                served.push(number);
                if let Ok(mut order) = order.lock() {
                    order.push(number);
                }
                thread::sleep(Duration::from_millis(options.work));
            }
            conclude(options, &delivery);
            delivery.complete();
        }
    }
    served
}
