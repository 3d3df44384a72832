//! Writes a prompt's images to files, for programs that accept them in no other form.

use agentwire_protocol::command::Image;
use agentwire_protocol::{GatewayError, Prompt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::agent::Launch;

/// Refuses images that cannot be written to files.
pub(crate) fn check(prompt: &Prompt) -> Result<(), GatewayError> {
    prompt.images.iter().try_for_each(|image| read(image).map(drop))
}

/// Adds the prompt's images to the files of its process and returns their names.
pub(crate) fn add(
    prompt: Option<&Prompt>,
    launch: &mut Launch,
) -> Result<Vec<String>, GatewayError> {
    let images = prompt.into_iter().flat_map(|prompt| &prompt.images);
    let names = (1..).zip(images).map(|(number, image)| {
        let (extension, contents) = read(image)?;
        let name = format!("image-{number}.{extension}");
        launch.file(&name, contents);
        Ok(name)
    });
    names.collect()
}

/// The file name extension, by which programs recognise the type, and the bytes.
fn read(image: &Image) -> Result<(&'static str, Vec<u8>), GatewayError> {
    let extension = match image.media_type.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/bmp" => "bmp",
        "image/heic" => "heic",
        "image/heif" => "heif",
        "image/avif" => "avif",
        other => {
            return Err(GatewayError::invalid(format!(
                "`{other}` is not a supported image mediaType"
            )));
        }
    };
    let contents = STANDARD.decode(&image.data);
    let contents = contents.map_err(|error| {
        GatewayError::invalid(format!("image data is not valid base64: {error}"))
    })?;
    Ok((extension, contents))
}
