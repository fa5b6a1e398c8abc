// The scripts of `completion`, loaded in their shells: which completions a line offers after Tab.

import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'penstock-completion-'))
afterAll(() => rmSync(folder, { recursive: true }))

const programs = {
  penstock: fileURLToPath(new URL('../main.ts', import.meta.url)),
  'penstock-agent': fileURLToPath(new URL('../../../agent/src/main.ts', import.meta.url)),
}

/** Calls the script's function like bash after Tab. */
const bash = `source "$1"; read -ra COMP_WORDS <<< "$2"; [[ $2 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMP_LINE=$2; COMP_POINT=\${#2}
"_\${COMP_WORDS[0]//-/_}" "\${COMP_WORDS[0]}" "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "\${COMPREPLY[@]}"`
/** Types the line and a Tab in a new interactive shell, and waits for the expected output. */
const zsh = `zmodload zsh/zpty; zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "autoload -Uz compinit; compinit -u -D; source \${(q)1}; bindkey '^I' list-choices; PS1='READY'; PS1+='> '"
zpty -r shell out '*READY> *'
zpty -n -w shell "$2"$'\t'
zpty -r shell out "*\${3}[[:space:]]*"; print -r -- "$out"; zpty -d shell`
const fish = 'source $argv[1]; complete -C $argv[2]'

const shells = {
  bash: ['bash', '--norc', '-c', bash, 'bash'],
  zsh: ['zsh', '-f', '-c', zsh, 'zsh'],
  fish: ['fish', '--no-config', '-c', fish],
} as const

describe.each(['bash', 'zsh', 'fish'] as const)('%s', (shell) => {
  const isMissing = spawnSync(shell, ['--version']).status !== 0
  beforeAll(async () => {
    if (isMissing) return
    for (const [name, main] of Object.entries(programs)) {
      const args = ['--conditions=source', main, 'completion', shell]
      writeFileSync(join(folder, `${name}.${shell}`), (await promisify(execFile)(process.execPath, args)).stdout)
    }
  })

  test.skipIf(isMissing).each([
    { line: 'penstock st', offers: 'status' },
    { line: 'penstock lint -o ', offers: 'sarif' },
    { line: 'penstock status --wa', offers: '--watch' },
    { line: 'penstock rollout un', offers: 'undo' },
    { line: 'penstock completion f', offers: 'fish' },
    { line: 'penstock-agent va', offers: 'validate' },
    { line: 'penstock-agent graph --format ', offers: 'mermaid' },
    { line: 'penstock-agent explain search_', offers: 'search_engine' },
  ])('$line: $offers', async ({ line, offers }) => {
    const [command, ...args] = shells[shell]
    const script = join(folder, `${line.split(' ')[0]}.${shell}`)
    const { stdout } = await promisify(execFile)(command, [...args, script, line, offers], { timeout: 60_000 })
    expect(stdout).toMatch(new RegExp(`(?:^|\\s)${offers}(?:\\s|$)`))
  })
})

describe('kubectl penstock', () => {
  const bins = fileURLToPath(new URL('../../bin', import.meta.url))
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${folder}:${process.env['PATH']}` }
  beforeAll(() => {
    symlinkSync(join(bins, 'penstock.js'), join(folder, 'kubectl-penstock'))
    symlinkSync(join(bins, 'kubectl-complete.js'), join(folder, 'kubectl_complete-penstock'))
  })

  /** The offered words without their help, and the directive. */
  async function offers(program: string, words: readonly string[]) {
    const { stdout } = await promisify(execFile)(program, words, { env, timeout: 60_000 })
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]]))
  }

  const cases = [
    { words: ['sta'], offered: ['status', ':4'] },
    { words: ['-n', 'shop', 'rol'], offered: ['rollout', ':4'] },
    { words: ['-n', 'sta'], offered: [':0'] },
    { words: ['lint', '-o', ''], offered: ['text', 'sarif', 'junit', ':4'] },
    { words: ['lint', '--output=s'], offered: ['--output=sarif', ':4'] },
    { words: ['lint', '--output=sarif', ''], offered: [':0'] },
    { words: ['lint', ''], offered: [':0'] },
    { words: ['status', '--wat'], offered: ['--watch', ':4'] },
    { words: ['rollout', 'un'], offered: ['undo', ':4'] },
    { words: ['explain', 'search_'], offered: ['search_engine', ':4'] },
    { words: ['nonsense', 'x'], offered: [':4'] },
  ]

  test.each(cases)('$words: $offered', async ({ words, offered }) => {
    expect(await offers('kubectl_complete-penstock', words)).toEqual(offered)
  })

  test('each word has its help', async () => {
    const { stdout } = await promisify(execFile)('kubectl_complete-penstock', ['wh'], { env, timeout: 60_000 })
    expect(stdout).toBe('why\tShow which Pipelines read the logs of a pod, and why.\n:4\n')
  })

  const isMissing = spawnSync('kubectl', ['version', '--client']).status !== 0
  test.skipIf(isMissing).each(cases)('kubectl finds it: $words', async ({ words, offered }) => {
    expect(await offers('kubectl', ['__complete', 'penstock', ...words])).toEqual(offered)
  })
})
