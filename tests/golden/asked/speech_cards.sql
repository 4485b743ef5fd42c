FROM speech_fits_on('gtx-1050-ti', 'unsloth/orpheus-3b-0.1-ft', seconds := 25)
UNION ALL FROM speech_fits_on('rtx-3060-12gb', 'nvidia/parakeet-tdt-0.6b-v3', seconds := 1000)
UNION ALL FROM speech_fits_on('no-such-card', 'hexgrad/Kokoro-82M')
