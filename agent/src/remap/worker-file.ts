// Where the file of a worker lies: beside the module that starts it, under the same ending. In the image, modules are packed
// into few files, and all of them lie in one folder.

export function fileBeside(name: string, url: string): URL {
  const ending = /\.ts(?:\?|$)/.test(url) ? '.ts' : '.js'
  return new URL(`./${name}${ending}`, url)
}
