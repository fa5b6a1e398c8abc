/** Stands before commands that messages suggest: in a checkout npx finds them; archives and packages put them into the PATH. */
export const npx = import.meta.filename.endsWith('.ts') ? 'npx ' : ''
