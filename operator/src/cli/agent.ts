// The process of the agent that `penstock run` starts.

// It ends with its parent, however that ends: a parent that was killed passes no signal on.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()

// Loaded last, as it runs while it is loaded.
await import('@penstock/agent/main')
