//! Kubernetes's own objects with every field set, where a checkout has them beside it.

use std::{io::Read, path::Path};

/// Names (`HEAD/apps.v1.Deployment.json`) and contents. `None`, said aloud, where there are none.
pub(crate) fn objects() -> Option<Vec<(String, Vec<u8>)>> {
    archive("api-objects.tar.gz")
}

/// The files of one archive beside the checkout.
pub(crate) fn archive(name: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden").join(name);
    let Ok(bytes) = std::fs::read(&archive) else {
        eprintln!("skipped: there are no golden objects");
        return None;
    };
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut tar).expect("gzip");
    Some(files(&tar))
}

/// The plain files of a tar archive: a header of 512 bytes with name and octal size, the content, padding.
fn files(tar: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (mut files, mut rest) = (Vec::new(), tar);
    let text = |bytes: &'_ [u8]| bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    while let Some((header, after)) = rest.split_at_checked(512) {
        let name = std::str::from_utf8(&header[..text(&header[..100])]).expect("a name");
        let octal = std::str::from_utf8(&header[124..135]).expect("a size").trim_matches(['\0', ' ']);
        let Ok(size) = usize::from_str_radix(octal, 8) else { break };
        files.push((name.to_owned(), after[..size].to_vec()));
        rest = &after[size.div_ceil(512) * 512..];
    }
    files.retain(|it| !it.1.is_empty());
    files
}
