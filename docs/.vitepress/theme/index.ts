// The default theme, with a style that keeps the comments of commands visible on narrow screens.

import DefaultTheme from 'vitepress/theme'
import './commands.css'

export default DefaultTheme
