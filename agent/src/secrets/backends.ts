// Secret backends: a command, a JSON file, or a directory with a file for each secret.
// They are read together with the configuration. Messages about a secret contain its key, but no part of its value.

import { spawn } from 'node:child_process'
import { join, normalize } from 'node:path'
import { timerMs } from '../clock.ts'
import { counted } from '../counted.ts'
import { GivenFileError, readGivenTextAsync } from '../given-file.ts'
import { bool, list, map, type OptionValue, oneOf, optional, path, seconds, tagged, text } from '../schema/options.ts'

/** The top-level setting `secret`: backends by name. */
export const secretOption = optional(
  map(
    tagged(
      'type',
      {
        exec: {
          command: list(text('The command or an argument.'), 'Command that returns secrets, with its arguments.', {
            minItems: 1,
            examples: [['/usr/bin/secrets', 'get']],
          }),
          timeout: seconds('Timeout of the command in seconds.', { default: 5, exclusiveMinimum: 0 }),
          protocol_version: oneOf(['1.0'], 'Protocol version of the request.', { default: '1.0' }),
        },
        file: { path: path('JSON file with an object of strings.', { use: 'read' }) },
        directory: {
          path: path('Directory with a file for each secret.', { use: 'read' }),
          remove_trailing_whitespace: bool('Whether to remove whitespace after the secret.', {
            default: false,
          }),
        },
      },
      'A secret backend.',
    ),
    'Secret backends by name. The agent replaces `SECRET[name.key]` in an option by the secret.',
  ),
)

export type Backend = NonNullable<OptionValue<typeof secretOption>>[string]

/** A secret for each available key, and a reason for each other key. */
export interface Answers {
  readonly secrets: ReadonlyMap<string, string>
  readonly problems: ReadonlyMap<string, string>
}

export async function readSecrets(backend: Backend, keys: readonly string[]): Promise<Answers> {
  const secrets = new Map<string, string>()
  const problems = new Map<string, string>()
  let read: (key: string) => Promise<unknown>
  try {
    read = await reader(backend, keys)
  } catch (error) {
    const reason = (error as Error).message
    return { secrets, problems: new Map(keys.map((key) => [key, reason])) }
  }
  for (const key of keys) {
    try {
      const value = await read(key)
      if (typeof value !== 'string')
        problems.set(key, value === undefined ? 'the secret does not exist' : 'the secret is not a string')
      else if (value === '') problems.set(key, 'the secret is empty')
      else secrets.set(key, value)
    } catch (error) {
      problems.set(key, (error as Error).message)
    }
  }
  return { secrets, problems }
}

async function reader(backend: Backend, keys: readonly string[]): Promise<(key: string) => Promise<unknown>> {
  switch (backend.type) {
    case 'file': {
      const values = jsonObject(await fileText(backend.path), `"${backend.path}"`)
      return async (key) => (Object.hasOwn(values, key) ? values[key] : undefined)
    }
    case 'directory':
      return async (key) => {
        const file = normalize(join(backend.path, key))
        if (!file.startsWith(normalize(`${backend.path}/`))) throw new Error('the key points outside the directory')
        const text = await fileText(file)
        return backend.remove_trailing_whitespace ? text.trimEnd() : text
      }
    case 'exec': {
      const request = JSON.stringify({ version: backend.protocol_version, secrets: keys })
      const answer = jsonObject(await outputOf(backend.command, request, backend.timeout), 'the output of the command')
      return async (key) => {
        const entry = (Object.hasOwn(answer, key) ? answer[key] : undefined) as
          | { value?: unknown; error?: unknown }
          | null
          | undefined
        if (entry?.error !== undefined && entry.error !== null) throw new Error(String(entry.error))
        return entry?.value ?? undefined
      }
    }
  }
}

async function fileText(file: string): Promise<string> {
  try {
    return await readGivenTextAsync({ option: 'secret', path: file })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    const { code, reason } = error
    throw new Error(code === 'ENOENT' ? `"${file}" does not exist` : `"${file}" cannot be read: ${reason}`)
  }
}

function jsonObject(text: string, name: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's message would quote the text, which contains secrets.
    throw new Error(`${name} is not valid JSON`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is not a JSON object`)
  return value as Record<string, unknown>
}

/** Runs a command with a request on standard input, and returns its standard output. */
async function outputOf(command: readonly string[], request: string, timeoutSecs: number): Promise<string> {
  const [program = '', ...args] = command
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  const timer = setTimeout(
    () => {
      child.kill('SIGKILL')
      reject(new Error(`"${program}" did not finish within ${counted(timeoutSecs, 'second')}`))
    },
    timerMs(timeoutSecs * 1000),
  )
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  // A command may close its input without reading it. Its exit code shows whether this is an error.
  child.stdin.on('error', () => {})
  child.on('error', (error: NodeJS.ErrnoException) => {
    reject(new Error(`"${program}" cannot be run: ${error.code ?? error.message}`))
  })
  child.on('close', (code, signal) => {
    if (code === 0) resolve(output)
    else reject(new Error(`"${program}" failed with ${signal ?? `exit code ${code}`}`))
  })
  child.stdin.end(request)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}
