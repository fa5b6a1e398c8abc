// The agent process that `penstock run` starts.

// Exits with its parent, however the parent ends: a killed parent forwards no signal.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()

// Imported last, because it runs during its import.
await import('@penstock/agent/main')
