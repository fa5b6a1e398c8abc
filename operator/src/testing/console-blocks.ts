// Commands on a page and their output: `console` blocks, in which `$` begins a command.

export interface Shown {
  readonly command: string
  readonly output: string
}

/** The commands of a page by block. */
export function consoleBlocks(page: string): readonly (readonly Shown[])[] {
  const blocks = [...page.matchAll(/^```console\n(.*?)^```$/gms)].map(([, block = '']) => block)
  return blocks.map((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((text) => {
        const [command = ''] = /^(?:.*\\\n)*.*/.exec(text) ?? []
        return { command, output: text.slice(command.length + 1) }
      }),
  )
}

/** A line as the page shows it, with `…` for text that changes on each run. */
export function shownLine(line: string): RegExp {
  return new RegExp(`^${line.split('…').map(RegExp.escape).join('.*')}$`)
}
