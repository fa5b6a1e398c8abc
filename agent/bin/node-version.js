// Checks the version of Node. This file must run on any version, because old versions can only report that they do not support `.ts`.

/** The oldest version that runs the sources unchanged. The images contain at least this version. */
const needed = [26, 10]

/**
 * Runs the program, or explains why this version of Node cannot.
 * @param {string} name the command
 * @param {URL} main its entry point
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
