/** The prefix of suggested commands: npx in a checkout; archives and packages put the programs into the PATH. */
export const npx = import.meta.filename.endsWith('.ts') ? 'npx ' : ''
