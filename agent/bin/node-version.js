// The one check that must run on any Node: the sources need a new one, and an old one would only say that it does not know `.ts`.

/** The smallest that runs the sources as they are, as the images have it. */
const needed = [26, 10]

/**
 * Runs the program, or explains why this Node cannot.
 * @param {string} name the command
 * @param {URL} main its entry
 */
export async function start(name, main) {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) {
    await import(main.href)
    return
  }
  const found = `this is Node ${process.versions.node} (${process.execPath})`
  const help = `Put a newer one first in PATH. The archives of a release bring their own, and so does the repository: \`npm ci\`, then \`npx ${name}\`.`
  process.stderr.write(`${name} needs Node ${needed.join('.')} or newer; ${found}.\n${help}\n`)
  process.exitCode = 69
}
